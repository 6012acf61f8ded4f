import { useState } from 'react';
import type { AdminRow } from '../api/shapes.ts';
import { leading, newsText, rowNews } from './row-news.ts';

interface Shown {
  readonly view: string;
  readonly own: number;
  readonly isFresh: boolean;
  readonly rows: readonly AdminRow[];
}

/** The page as it was read last. */
interface ReadPage {
  /** Undefined: not read yet. */
  readonly rows: readonly AdminRow[] | undefined;
  /** How many changes this page had made when it was read. */
  readonly own: number;
  /** False: what an earlier visit left. */
  readonly isFresh: boolean;
}

interface ShownRows {
  readonly rows: readonly AdminRow[];
  /** `3 changed, 1 new: show`; empty: all is shown. */
  readonly news: string;
  readonly show: () => void;
}

/**
 * What is being read stays where it is: what others changed is offered, and shown when it is asked for. A live list shows changes in their place, and offers new
 * rows on top. What this page changed itself is shown.
 */
export function useShownRows(
  view: string,
  { rows, own, isFresh }: ReadPage,
  live: { readonly isLive: boolean; readonly isSorted: boolean },
): ShownRows {
  const [shown, setShown] = useState<Shown | null>(null);
  const accept = (): void => (rows === undefined ? undefined : setShown({ view, own, isFresh, rows }));
  const isOther = shown?.view !== view || shown.own !== own || (isFresh && !shown.isFresh);
  if (rows !== undefined && isOther) accept();
  if (rows === undefined) return { rows: [], news: '', show: accept };
  const before = isOther ? rows : shown.rows;
  if (!live.isLive) return { rows: before, news: newsText(rowNews(before, rows)), show: accept };
  const added = live.isSorted ? 0 : leading(before, rows);
  return { rows: rows.slice(added), news: newsText({ added, changed: 0 }), show: accept };
}
