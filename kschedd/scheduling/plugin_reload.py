"""Reload of the classes of out-of-tree plugins after a change of their file, while the scheduler runs.

From the next attempt on, each profile uses new instances, with arguments that are parsed again. If a class gains or
loses an extension point, the profiles with the plugin do too. A pod that waits at Permit or is being bound keeps the
plugin instances of its attempt.
"""

from collections.abc import Mapping
from typing import Any

from kschedd.config.args import written
from kschedd.config.changing.changes import with_plugin_args, with_plugin_disabled, with_plugin_enabled
from kschedd.config.in_tree import IN_TREE, Catalogue
from kschedd.config.model import Config
from kschedd.config.parsing.faults import ConfigErrors
from kschedd.framework.interface import extension_points
from kschedd.framework.registry import PluginLoadError, name_taken
from kschedd.scheduling.driver import SchedulingDriver
from kschedd.scheduling.inputs import Reconfigure


def reload_plugins(driver: SchedulingDriver, classes: Mapping[str, type[Any]], source: str) -> None:
    """Replace these classes by their new definitions in `source` (a file).

    If this function raises PluginLoadError, nothing has changed.
    """
    registry, config = driver.machine.registry, driver.machine.config
    for name in classes:
        if (owner := registry.source_of(name) or source) != source:
            raise name_taken(name, source, owner)
    gone = [name for name, where in registry.sources.items() if where == source and name not in classes]
    for profile in config.profiles:
        for name in gone:
            if name in profile.names():
                raise PluginLoadError(source, f"no longer defines {name}, which profile {profile.scheduler_name} uses")
    added, sources = dict(registry.added), dict(registry.sources)
    for name in gone:
        del registry.added[name], registry.sources[name]
    registry.added.update(classes)
    registry.sources.update(dict.fromkeys(classes, source))
    catalogue = IN_TREE | registry.catalogue()
    try:
        driver.step(Reconfigure(_refreshed(config, classes, added, catalogue)))
    except (PluginLoadError, ConfigErrors) as fault:
        registry.added.clear()
        registry.added.update(added)
        registry.sources.clear()
        registry.sources.update(sources)
        raise fault if isinstance(fault, PluginLoadError) else PluginLoadError(source, str(fault)) from None
    # Earlier configurations contain arguments of the old classes, so they cannot be restored.
    driver.config_changes.made.clear()


def _refreshed(
    config: Config, classes: Mapping[str, type[Any]], before: Mapping[str, type[Any]], catalogue: Catalogue
) -> Config:
    """Return the configuration for the new classes."""
    for scheduler_name in [profile.scheduler_name for profile in config.profiles]:
        for name, new in classes.items():
            profile = next(one for one in config.profiles if one.scheduler_name == scheduler_name)
            if name not in profile.names():
                continue
            args = profile.args(name)
            had, has = extension_points(before[name]), extension_points(new)
            if had - has:
                config = with_plugin_disabled(config, scheduler_name, name, sorted(had - has))
            if has - had:
                gained = sorted(has - had)
                config = with_plugin_enabled(config, scheduler_name, name, gained, catalogue=catalogue)
            if args is not None:
                config = with_plugin_args(config, scheduler_name, name, written(args), catalogue=catalogue)
    return config
