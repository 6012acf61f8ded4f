import type { Database } from '../db/engine/db.ts';
import type { SqlExecutor } from '../db/engine/foreign/sql-executor.ts';
import type { DbLog } from '../db/log.ts';
import type { Container } from '../di/container.ts';
import type { EventHandler } from './event-handler.ts';

/** Who handles the events of one database. */
export interface EventHub {
  readonly database: Database;
  readonly handlers: readonly EventHandler[];
  readonly services: Container;
  readonly log: DbLog;
  /** Stores a durable handler's work in the transaction; null without the jobs module. */
  readonly startDurable: ((tx: SqlExecutor, handler: EventHandler, data: unknown) => Promise<unknown>) | null;
}

const hubs = new WeakMap<Database, EventHub>();

/** `createApp` does it for every database of the application. */
export function bindEvents(hub: EventHub): void {
  hubs.set(hub.database, hub);
}

export function unbindEvents(database: Database): void {
  hubs.delete(database);
}

export function eventHubOf(database: Database): EventHub | undefined {
  return hubs.get(database);
}

/** Runs one handler. What it throws is logged and does not stop the others. */
export async function runHandler({ database, services, log }: EventHub, handler: EventHandler, data: unknown): Promise<void> {
  const scope = services.scope();
  try {
    await handler.handle(data, { db: database, services: scope });
  } catch (error) {
    log.error({ err: error, event: handler.event.name, handler: handler.name }, 'a handler of a domain event failed');
  } finally {
    await scope.end()?.catch((error: unknown) => log.error({ err: error }, 'services of an event handler could not be disposed of'));
  }
}
