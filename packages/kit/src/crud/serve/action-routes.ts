import type { ErrorDefinition } from '../../errors/catalog.ts';
import { coreErrors } from '../../errors/core-errors.ts';
import { jsonSchema } from '../../http/declare/json-schema.ts';
import type { Route } from '../../http/declare/route.ts';
import type { Schema } from '../../http/declare/schema.ts';
import { selectionField } from '../declare/action-rule.ts';
import { crudErrors } from '../declare/errors.ts';
import type { Item } from '../declare/item.ts';
import { namedActions, selectionBody, selectionResponse } from '../mount/named-actions.ts';
import { SelectionActions } from './actions.ts';
import { withOnceSchema } from '../mount/once-schema.ts';
import { lazySchema } from '../mount/lazy-schema.ts';
import type { Operations } from './operations.ts';
import type { RouteMaker } from './route-maker.ts';

/** What routes of one row, and of the collection, have in common. */
interface Facts {
  /** Of a route that changes a row. */
  readonly changing: Partial<Route['options']>;
  readonly ofCollection: Partial<Route['options']>;
  readonly missing: ErrorDefinition;
  readonly guarded: readonly ErrorDefinition[];
  readonly expanding: readonly ErrorDefinition[];
  readonly item: Schema;
  readonly query: Schema;
}

/** `POST /:id/<name>` of transitions and actions, and `POST /actions/<name>` of those on a selection. */
export function* actionRoutes({ access, reading, writing }: Operations, maker: RouteMaker, given: Facts): Iterable<[string, Route]> {
  const { changing, missing, guarded, expanding } = given;
  const selections = new SelectionActions(access);
  for (const named of namedActions(access)) {
    const { name, verb, rule } = named;
    const { permission, input, summary, response, status, raises = [] } = rule;
    const stated = { ...(summary === undefined ? {} : { summary }), ...(permission === undefined ? {} : { permission }) };
    const ofRows = response === undefined ? {} : { ofRows: false as const };
    const refusals = verb === 'transition' ? [crudErrors.invalid_transition] : raises;
    const { query: _shape, responses: _tags, ...plain } = changing;
    const facts = {
      ...(response === undefined
        ? { ...changing, response: lazySchema(() => withOnceSchema(access.policy, name, given.item)) }
        : { ...plain, response }),
      ...(status === undefined
        ? {}
        : { status, ...(response === undefined ? { responses: { [status]: changing.responses?.[200] ?? {} } } : {}) }),
      ...(input === undefined ? {} : { body: input }),
      raises: [missing, ...refusals, ...guarded, ...(response === undefined ? expanding : [])],
      ...stated,
    };
    const handler = verb === 'transition' ? writing.transition(name) : writing.action(name, response !== undefined);
    yield* maker.route(name, 'POST', `/:id/${name}`, 'write', verb === 'action' ? { ...facts, ...ofRows, of: 'one' } : facts, handler);
    if (rule.on !== 'selection') continue;
    const ofMany = {
      ...given.ofCollection,
      ...(response === undefined ? { query: given.query } : {}),
      body: lazySchema(() => selectionBody(access, named)),
      status: 207,
      response: lazySchema(() => selectionResponse(named, given.item)),
      responses: {
        207: { description: 'Result of each record, in request order.', headers: { 'X-Bulk-Failed': 'Number of records that failed.' } },
      },
      raises: [
        ...(rule.effects === 'outside' ? [crudErrors.dry_run_not_possible] : []),
        coreErrors.conflict,
        ...(response === undefined ? expanding : []),
      ],
      ...stated,
      ...(summary === undefined ? {} : { summary: `${summary}: many records` }),
      each: name,
      of: 'many' as const,
      ...ofRows,
    };
    yield* maker.route(selectionField(name), 'POST', `/actions/${name}`, 'write', ofMany, selections.run(named));
  }
  if (Object.keys(access.transitionRules).length > 0)
    yield* maker.route(
      'transitions',
      'GET',
      '/:id/transitions',
      'read',
      { ...(changing.params === undefined ? {} : { params: changing.params }), response: TransitionList, raises: [missing] },
      reading.transitions,
    );
}

const TransitionList = jsonSchema<{ items: Item[] }>({
  type: 'object',
  properties: {
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          to: { type: 'string' },
          input: { type: 'object', description: 'JSON Schema of the body, where the transition takes one.', additionalProperties: true },
        },
        required: ['name', 'to'],
      },
    },
  },
  required: ['items'],
});
