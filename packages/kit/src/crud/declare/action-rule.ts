import type { ErrorDefinition } from '../../errors/catalog.ts';
import type { Schema } from '../../http/declare/schema.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { AnyResourceOptions } from './resource.ts';
import type { Item } from './item.ts';

/** What transitions and actions have in common: a name in the URL of a row, and of many rows. */
export interface NamedRule {
  readonly on?: 'record' | 'selection';
  readonly permission?: Permission;
  readonly input?: Schema;
  readonly summary?: string;
}

/** A declared action, with its types erased. */
export interface ActionRule extends NamedRule {
  readonly audience?: string;
  readonly effects?: 'outside';
  readonly lock?: false;
  readonly response?: Schema;
  readonly status?: number;
  readonly raises?: readonly ErrorDefinition[];
  readonly run: (context: object, next: (changes: Item) => Promise<Item>) => unknown;
}

/** The actions of a resource that controllers of an audience offer. */
export function actionRulesOf({ actions = {} }: AnyResourceOptions, audience?: string | null): Readonly<Record<string, ActionRule>> {
  const rules = Object.entries(actions as unknown as Readonly<Record<string, ActionRule>>);
  return Object.fromEntries(
    rules.filter(([, rule]) => audience === undefined || rule.audience === undefined || rule.audience === audience),
  );
}

/** The field of the route that does to a selection what another does to one record: `payMany`, `send-again_many`. */
export function selectionField(name: string): string {
  return /[-_]/.test(name) ? `${name}_many` : `${name}Many`;
}

/** A declared transition, with its types erased. */
export interface TransitionRule extends NamedRule {
  readonly from: readonly unknown[];
  readonly to: unknown;
  readonly guard?: (row: Item, caller: unknown) => boolean | string;
}

/** Whether a transition or an action can be the last part of an address as it is written. Others are reported at start-up. */
export function isTransitionName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name);
}
