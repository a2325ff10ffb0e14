kubectl patch svc checkout-service -n e-commerce -p '{"spec":{"selector":{"version":"green"}}}'
