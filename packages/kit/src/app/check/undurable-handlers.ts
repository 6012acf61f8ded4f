import type { EventHandler } from '../../events/event-handler.ts';
import type { Fault } from '../../options/fault.ts';

/** Handlers that are to run as jobs, in an app without a module that runs any. */
export function undurableHandlers(handlers: readonly EventHandler[]): Fault[] {
  return handlers
    .filter(({ durable }) => durable)
    .map(({ event, name }) => ({
      id: 'E006',
      message: `The handler "${name}" of ${event.name} is durable, and no module runs jobs.`,
      hint: 'Add jobs() to modules.',
    }));
}
