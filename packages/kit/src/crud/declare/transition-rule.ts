import type { NamedRule } from './action-rule.ts';
import type { Item } from './item.ts';

/** Whether a transition or an action can be the last part of an address as it is written. Others are reported at start-up. */
export function isTransitionName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name);
}

/** A declared transition, with its types erased. */
export interface TransitionRule extends NamedRule {
  readonly from: readonly unknown[];
  readonly to: unknown;
  readonly guard?: (row: Item, caller: unknown) => boolean | string;
}
