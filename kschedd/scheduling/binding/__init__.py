"""Steps from an assumed pod to a bound one: Reserve, Permit, PreBind, Bind, PostBind."""
