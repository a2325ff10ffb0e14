"""Operations on the daemon itself: status, configuration, plugins, metrics, recordings, reports, dumps."""
