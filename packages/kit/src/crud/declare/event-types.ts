/** The operations of a resource that are no transitions, in the words of event types and audit entries. */
export const PAST_OPERATIONS = { create: 'created', update: 'updated', destroy: 'deleted', restore: 'restored' } as const;

type PastOperation = (typeof PAST_OPERATIONS)[keyof typeof PAST_OPERATIONS];

/** The event types of a resource by change: `{ created: 'order.created', pay: 'order.pay', … }`. */
export type EventTypesOf<T extends string> = { readonly [K in PastOperation | T]: string };

export function eventTypesOf<T extends string>(resource: string, transitions: readonly T[]): EventTypesOf<T> {
  const changes = [...Object.values(PAST_OPERATIONS), ...transitions];
  return Object.freeze(Object.fromEntries(changes.map((change) => [change, `${resource}.${change}`]))) as EventTypesOf<T>;
}
