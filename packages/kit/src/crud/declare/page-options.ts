import { limits } from './limits.ts';

/** How the rows of a list are counted. */
export type CountMode = 'exact' | 'none' | 'estimate' | { readonly upTo: number };

export interface PageOptions {
  readonly style: 'cursor' | 'offset';
  readonly default: number;
  readonly max: number;
  readonly count: CountMode;
}

export function pageOptions(given: Partial<PageOptions> = {}): PageOptions {
  const {
    style = 'cursor',
    max = given.default === undefined ? limits.pageMax : Math.max(limits.pageMax, given.default),
    count = { upTo: limits.countUpTo },
  } = given;
  return { style, max, default: given.default ?? Math.min(limits.page, max), count };
}
