/** Sent to one endpoint by the ping route, whatever it subscribes to. */
export const PING_EVENT = 'webhook.ping';
