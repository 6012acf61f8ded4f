import type { Schema } from '../../http/declare/schema.ts';
import type { Permission } from '../../permissions/permission.ts';
import type { Item } from './item.ts';

/** Whether a transition can be the last part of an address as it is written. Others are reported at start-up. */
export function isTransitionName(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]*$/.test(name);
}

/** A declared transition, with its types erased. */
export interface TransitionRule {
  readonly from: readonly unknown[];
  readonly to: unknown;
  readonly permission?: Permission;
  readonly input?: Schema;
  readonly guard?: (row: Item, caller: unknown) => boolean | string;
  readonly summary?: string;
}
