import type { SqlExecutor } from '../db/engine/foreign/sql-executor.ts';
import type { DomainEvent } from './domain-event.ts';
import { eventHubOf, runHandler } from './event-hub.ts';
import { stepsOf } from '../db/values/standard-schema.ts';

export type EmitFault = 'data_invalid' | 'no_transaction' | 'no_commit_hook' | 'not_installed';

/** A call of `emit` that was refused before anything was written. */
export class EmitRefused extends Error {
  override readonly name = 'EmitRefused';
  readonly code: EmitFault;

  constructor(code: EmitFault, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Tells the handlers of an event about it, after the commit and in the order in which they were registered; never, if the transaction or
 * savepoint is rolled back. Durable handlers are jobs of the transaction.
 *
 * @example
 * ```ts
 * await db.transaction(async (tx) => {
 *   await update(tx, orders, id, { status: 'paid' });
 *   await emit(tx, OrderPaid, { id });
 * });
 * ```
 */
export async function emit<Data>(tx: SqlExecutor, event: DomainEvent<Data>, data: Data): Promise<void> {
  if (typeof tx?.query !== 'function' || tx.isTransaction === false)
    throw new EmitRefused(
      'no_transaction',
      'emit() belongs to a transaction and none is open: call it inside db.transaction(async (tx) => …).',
    );
  const hub = tx.database === undefined ? undefined : eventHubOf(tx.database);
  if (hub === undefined)
    throw new EmitRefused(
      'not_installed',
      'emit() does not know who handles the events of this transaction: pass { database } to its adapter, and create the app first.',
    );
  const checked = await event.schema['~standard'].validate(data);
  if (checked.issues !== undefined) {
    const faults = checked.issues.slice(0, 5).map((issue) => `${stepsOf(issue).join('.')}: ${issue.message}`);
    throw new EmitRefused('data_invalid', `The data of ${event.name} does not match its schema: ${faults.join('; ')}.`);
  }
  const handlers = hub.handlers.filter((handler) => handler.event === event);
  const direct = handlers.filter(({ durable }) => !durable);
  if (direct.length > 0 && tx.afterCommit === undefined)
    throw new EmitRefused(
      'no_commit_hook',
      'This transaction cannot tell when it commits, so handlers would run too early: only durable handlers work here.',
    );
  for (const handler of handlers.filter(({ durable }) => durable)) await hub.startDurable?.(tx, handler, data);
  for (const handler of direct) tx.afterCommit?.(() => runHandler(hub, handler, checked.value));
}
