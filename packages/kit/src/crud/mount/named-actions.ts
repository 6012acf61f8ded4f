import { jsonSchema } from '../../http/declare/json-schema.ts';
import { partSchemaOf, type Schema } from '../../http/declare/schema.ts';
import { type ActionRule, type NamedRule, isTransitionName } from '../declare/action-rule.ts';
import { limits } from '../declare/limits.ts';
import { actionBody, type ActionBody, type BulkBodyOptions } from '../input/bulk-body.ts';
import { resultsJson } from './bulk-schemas.ts';
import type { MountedResource } from './mounted-resource.ts';

/** A transition or an action that a controller offers. */
export interface NamedAction {
  readonly name: string;
  readonly verb: 'transition' | 'action';
  readonly rule: NamedRule & Pick<ActionRule, 'effects' | 'response' | 'status' | 'raises'>;
}

/** The transitions and actions that a controller offers. */
export function namedActions(mounted: MountedResource): NamedAction[] {
  const transitions = Object.entries(mounted.transitionRules).map(([name, rule]) => ({ name, verb: 'transition' as const, rule }));
  const actions = Object.entries(mounted.actionRules).map(([name, rule]) => ({ name, verb: 'action' as const, rule }));
  return [...transitions, ...actions].filter(({ name }) => isTransitionName(name));
}

/** `{ ids, input, dry_run }`. */
export function selectionBody(access: MountedResource, { name, rule }: NamedAction): Schema<unknown, ActionBody> {
  const { policy, lookup, address, options } = access;
  const requiresVersion = policy.options.version !== undefined && options.etag === 'required';
  const max = options.bulk?.max ?? limits.bulk;
  const given: BulkBodyOptions = { policy, input: [], lookup, address, max, isPartial: true, requiresVersion };
  return actionBody(given, name, rule.input);
}

/** `{ results: […], dry_run }`. */
export function selectionResponse({ rule }: NamedAction, item: Schema): Schema {
  const json = resultsJson(partSchemaOf(rule.response ?? item, 'output'), {
    dry_run: { type: 'boolean', description: 'Nothing was changed: this is what would happen.' },
  });
  return jsonSchema(json);
}
