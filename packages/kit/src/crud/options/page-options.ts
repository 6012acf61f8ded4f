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
  /**
   * `cursor` pages stay right while rows come and go; `offset` skips rows; `page` has numbers: `?page=2&page_size=20`, a larger `page_size` is
   * capped, and the response has `items` and `count` only. Default: `cursor`.
   */
  readonly style: 'cursor' | 'offset' | 'page';
  /** Rows of a page without `limit` or `page_size`. Default: 50. */
  readonly default: number;
  /** Most rows of a page. Default: 1,000; 100 where the style is `page`. */
  readonly max: number;
  /** How the rows of a list are counted. Default: `{ upTo: 1000 }`; lists with the style `page` are always counted exactly. */
  readonly count: CountMode;
  /** `cursor` also accepts the key of a row, for the rows behind it: for lists in the order of their key that had such cursors before. */
  readonly keyCursors: boolean;
}

export function pageOptions(given: Partial<PageOptions> = {}): PageOptions {
  const { style = 'cursor' } = given;
  const isNumbered = style === 'page';
  const usualMax = isNumbered ? limits.pageNumberedMax : limits.pageMax;
  const {
    max = given.default === undefined ? usualMax : Math.max(usualMax, given.default),
    count = isNumbered ? 'exact' : { upTo: limits.countUpTo },
  } = given;
  const { keyCursors = false } = given;
  return { style, max, default: given.default ?? Math.min(limits.page, max), count, keyCursors };
}
