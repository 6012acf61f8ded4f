import { isRoute } from '../../http/declare/route.ts';
import { didYouMean } from '../../options/did-you-mean.ts';
import type { Fault } from '../../options/fault.ts';
import type { MountedResource } from '../mount/mounted-resource.ts';
import type { AnyCrudOptions } from '../options/crud-options.ts';
import { fieldOf, operationOf } from '../options/operation-field.ts';
import type { ActionRule } from '../declare/action-rule.ts';
import type { AnyResource } from '../declare/resource.ts';
import { widestView } from '../policy/make-view.ts';

/** Which hook writes the rows of an operation. */
const HOOK_OF: Readonly<Record<string, 'create' | 'update' | 'destroy'>> = {
  create: 'create',
  bulkCreate: 'create',
  import: 'create',
  update: 'update',
  partialUpdate: 'update',
  bulkUpdate: 'update',
  destroy: 'destroy',
  bulkDestroy: 'destroy',
};

/** What is wrong with `writes` and `once` of a resource, as a controller offers it. */
export function writeFaults(name: string, controller: object, { resource, policy, options }: MountedResource): Fault[] {
  const faults: Fault[] = [];
  const add = (id: string, message: string, hint: string) => void faults.push({ id, message: `${name}: ${message}`, hint });
  const { once = {}, transitions = {} } = resource.options;
  if (resource.options.writes === 'verbs')
    for (const [operation, hook] of missingHooks(controller, options, resource))
      add(
        'E013',
        hook === undefined
          ? `offers ${operation}, which has no hook, but resource(${policy.model.name}) writes by verbs.`
          : `offers ${operation}, but resource(${policy.model.name}) writes by verbs and has no ${hook} hook.`,
        hook === undefined ? 'Remove the operation.' : `Add hooks.${hook}, or remove the operation: operations: { ${operation}: false }.`,
      );
  if (resource.options.bodies !== undefined) {
    if (resource.options.writes !== 'verbs')
      add('E013', `resource(${policy.model.name}) has bodies, but does not write by verbs.`, "Add writes: 'verbs', or remove bodies.");
    for (const operation of ['bulkCreate', 'bulkUpdate', 'import'].filter((each) => each in controller))
      add('E013', `offers ${operation}, but resource(${policy.model.name}) has bodies of its own.`, 'Remove the operation.');
  }
  const fields = Object.entries(controller).flatMap(([field, value]) => (isRoute(value) ? [operationOf(options, field)] : []));
  const showing = new Set(['create', ...Object.keys(transitions), ...fields.filter((field) => !(field in HOOK_OF) && !READS.has(field))]);
  for (const [value, { on }] of Object.entries(once)) {
    for (const operation of on)
      if (!showing.has(operation))
        add(
          'E012',
          `once.${value} refers to "${operation}", which cannot show it.`,
          didYouMean(operation, [...showing]).trim() || `Known: ${[...showing].join(', ')}.`,
        );
    for (const operation of on) {
      const action = (resource.options.actions as Readonly<Record<string, ActionRule | undefined>> | undefined)?.[operation];
      const transition = (transitions as Readonly<Record<string, { readonly on?: string } | undefined>>)[operation];
      if (action?.response !== undefined || action?.on === 'selection' || transition?.on === 'selection')
        add(
          'E013',
          `once.${value} is shown by "${operation}", whose response has no single record.`,
          'Use an action on one record without a response of its own.',
        );
    }
    if (
      widestView(policy).knows(value) !== undefined ||
      Object.hasOwn(resource.options.computed ?? {}, value) ||
      Object.hasOwn(resource.relations as object, value)
    )
      add('E018', `once.${value} takes the name of a column, computed field or relation.`, 'Give it another name.');
    if (on.includes('create'))
      for (const operation of ['bulkCreate', 'import'].filter((each) => fieldOf(options, each) in controller))
        add(
          'E013',
          `offers ${operation}, whose response would not show once.${value}.`,
          'Remove the operation: rows are created one by one.',
        );
  }
  return faults;
}

const READS: ReadonlySet<string> = new Set([
  'list',
  'query',
  'queryAlias',
  'retrieve',
  'stats',
  'meta',
  'export',
  'transitions',
  'restore',
]);

function* missingHooks(
  controller: object,
  given: AnyCrudOptions,
  { options: { hooks = {}, transitions = {} } }: AnyResource,
): Iterable<[string, string | undefined]> {
  const offers = (operation: string) => fieldOf(given, operation) in controller;
  for (const [operation, hook] of Object.entries(HOOK_OF)) if (offers(operation) && hooks[hook] === undefined) yield [operation, hook];
  if (offers('import') && given.import?.by !== undefined && hooks.update === undefined) yield ['import', 'update'];
  if (offers('restore')) yield ['restore', undefined];
  if (Object.keys(transitions).length > 0 && hooks.transition === undefined) yield [Object.keys(transitions).join(', '), 'transition'];
}
