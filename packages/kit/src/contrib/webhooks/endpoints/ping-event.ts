/** Sent to one endpoint by the ping route, whatever it subscribes to. */
export const PING_EVENT = 'webhook.ping';

/** Begins the idempotency keys of examples that were sent to one endpoint: no other endpoint has missed them. */
export const EXAMPLE_KEY = 'webhook.example';
