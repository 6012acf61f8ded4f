import { limits } from '../declare/limits.ts';

/** How the rows of a list are counted. */
export type CountMode =
  | 'exact'
  | 'none'
  | 'estimate'
  | {
      /** Rows are counted up to this number. */
      readonly upTo: number;
    };

export interface PageOptions {
  /** `cursor` pages stay right while rows come and go; `offset` pages have numbers. Default: `cursor`. */
  readonly style: 'cursor' | 'offset';
  /** Rows of a page without `limit`. Default: 50. */
  readonly default: number;
  /** Most rows of a page. Default: 1,000. */
  readonly max: number;
  /** How the rows of a list are counted. Default: `{ upTo: 1000 }`. */
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
