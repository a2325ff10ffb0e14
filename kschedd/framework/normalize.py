"""The normalization most score plugins share: the highest raw score becomes 100, the others in proportion.

Source: Kubernetes v1.34, plugins/helper/normalize_score.go (DefaultNormalizeScore).
"""

import numpy as np
import numpy.typing as npt

from kschedd.framework.interface import MAX_NODE_SCORE


def default_normalize(scores: npt.NDArray[np.int64], reverse: bool) -> npt.NDArray[np.int64]:
    """Scores from 0 to 100, truncated; with `reverse` the highest raw score becomes 0. Raw scores are not negative."""
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full(len(scores), MAX_NODE_SCORE, dtype=np.int64) if reverse else scores
    shares = scores * MAX_NODE_SCORE // highest
    return MAX_NODE_SCORE - shares if reverse else shares
