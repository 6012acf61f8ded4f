import type { Schema } from '../http/schema.ts';
import type { Permission } from '../permissions/permission.ts';
import type { Item } from './select-unit.ts';

/** A declared transition, with its types erased. */
export interface TransitionRule {
  readonly from: readonly unknown[];
  readonly to: unknown;
  readonly permission?: Permission;
  readonly input?: Schema;
  readonly guard?: (row: Item, caller: unknown) => boolean | string;
  readonly summary?: string;
}
