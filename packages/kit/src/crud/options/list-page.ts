import type { Item } from '../declare/item.ts';

export interface ListPage {
  readonly items: readonly Item[];
  readonly count: number | null;
  /**
   * Query-only references: resolved against the request's address they are right behind any host, prefix or proxy. Absent where `page.style`
   * is `page`: the client counts.
   */
  readonly next?: string | null;
  readonly previous?: string | null;
}
