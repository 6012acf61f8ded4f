import type { Item } from '../declare/item.ts';

/** A change of a list that a program follows. Those up to `ready` belong together: after them, the list is that of one moment. */
export type LiveChange =
  | { readonly event: 'upsert'; readonly key: unknown; readonly item: Item }
  | { readonly event: 'remove'; readonly key: unknown }
  | { readonly event: 'reset' | 'ready' };
