import type { DurableHandlers } from '../../../app/declare/registry.ts';
import type { EventHandler } from '../../../events/event-handler.ts';
import { job, type JobDefinition } from '../declare/job.ts';
import { startJob } from './start-job.ts';

/** A job for each durable handler, and how its work is stored. The name of a handler must stay the same while jobs of it wait. */
export function durableHandlers(handlers: readonly EventHandler[]): DurableHandlers & { readonly jobs: readonly JobDefinition[] } {
  const byHandler = new Map(handlers.filter(({ durable }) => durable).map((handler) => [handler, jobOf(handler)]));
  return {
    jobs: [...byHandler.values()],
    async start(tx, handler, data) {
      const definition = byHandler.get(handler);
      if (definition === undefined)
        throw new Error(`The handler "${handler.name}" of ${handler.event.name} is not one of the application's.`);
      return startJob(tx, definition, data);
    },
  };
}

/** Acts for the application, not for a person: an event has no caller, so there is nobody whose standing could be asked. */
function jobOf({ event, name, handle }: EventHandler): JobDefinition {
  return job(`on.${event.name}.${name}`, {
    input: event.schema,
    run: async ({ input, db, services }) => void (await handle(input, { db, services })),
  });
}
