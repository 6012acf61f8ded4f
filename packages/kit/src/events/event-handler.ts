import type { Database } from '../db/engine/db.ts';
import type { ServiceScope } from '../di/container.ts';
import { isDomainEvent, type DomainEvent } from './domain-event.ts';
import { requireArguments } from '../options/read-options.ts';
import { aFunction, anObject, rule } from '../options/value-rule.ts';

/** What a handler gets besides the event's data. */
export interface EventContext {
  readonly db: Database;
  readonly services: ServiceScope;
}

export interface EventHandlerOptions {
  /** Runs it as a job: stored with the change, retried until it succeeds, also when this process ends. Needs the jobs module. */
  readonly durable?: boolean;
  /** Of a durable handler: part of the name of its job, so it must stay the same. Default: the function's name. */
  readonly name?: string;
}

/** A handler of an event, for `createApp({ handlers: [ … ] })`. */
export interface EventHandler {
  readonly isEventHandler: true;
  readonly event: DomainEvent;
  readonly name: string;
  readonly durable: boolean;
  // oxlint-disable-next-line typescript/no-explicit-any -- contravariant in the data; on() checked it against the event
  readonly handle: (data: any, context: EventContext) => unknown;
}

const NAME = /^[A-Za-z0-9_-]{1,30}$/;

/**
 * Calls the handler with the data of every such event, after the commit of the transaction that emitted it.
 *
 * @example
 * ```ts
 * createApp({ handlers: [on(OrderPaid, async ({ id }) => notify(id))], mount });
 * ```
 */
export function on<Data>(
  event: DomainEvent<Data>,
  handle: (data: Data, context: EventContext) => unknown,
  options: EventHandlerOptions = {},
): EventHandler {
  requireArguments(
    'on()',
    { event, handle, options },
    { event: rule('an event of domainEvent()', isDomainEvent), handle: aFunction, options: anObject },
  );
  const { durable = false, name = handle.name, ...unknown } = options;
  const faults = Object.keys(unknown).map((option) => `"${option}" is not an option; there are durable and name`);
  if (!isDomainEvent(event)) faults.push('the first argument is an event of domainEvent()');
  if (typeof handle !== 'function') faults.push('the second argument is a function');
  if (durable && !NAME.test(name))
    faults.push(
      'a durable handler needs a name that stays the same: { durable: true, name: "sendReceipt" }, at most 30 letters, digits, "_" and "-"',
    );
  if (faults.length > 0) throw new TypeError(`on(): ${faults.join('; ')}.`);
  return Object.freeze({ isEventHandler: true, event, name, durable, handle });
}
