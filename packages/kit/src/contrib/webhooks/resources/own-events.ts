import { filter } from '../../../crud/declare/filter.ts';
import { CrudController } from '../../../crud/serve/controller.ts';
import { uuidv7LowerBound } from '../../../db/values/uuidv7.ts';
import { jsonSchema } from '../../../http/declare/json-schema.ts';
import { hasScopes } from '../../../permissions/built-ins.ts';
import { EVENT_TYPE_LENGTH_MAX } from '../publishing/subscription.ts';
import { eventResource } from './events.ts';

/**
 * The published events of the caller, for the controller of endpoints: which there were, also those that no endpoint subscribed to. Their data is with the
 * deliveries: who may not add an endpoint must not read it here.
 */
export function ownEvents(using: string) {
  const OwnEvents = CrudController(eventResource, {
    permission: hasScopes({ allowUnscoped: true }),
    scope: 'webhooks',
    using,
    output: ['id', 'type', 'timestamp', 'sent'],
    filters: {
      type: filter(jsonSchema<string>({ type: 'string', maxLength: EVENT_TYPE_LENGTH_MAX }), (type) => ({ type })),
      since: filter(
        jsonSchema<string>({ type: 'string', format: 'date-time' }),
        (at) => ({ id: { gte: uuidv7LowerBound(new Date(at)) } }),
        { description: 'Published at this time or later.' },
      ),
    },
    queryMethod: false,
    page: { default: 100, max: 100, count: { upTo: 1000 }, keyCursors: true },
    operations: {
      list: { summary: 'List the events that your endpoints get, or would get, newest first' },
      retrieve: { field: 'event', summary: 'Read which event it was, and whether it was sent to you' },
      create: false,
      update: false,
      partialUpdate: false,
      destroy: false,
    },
  });
  return new OwnEvents();
}
