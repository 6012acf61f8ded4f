import { useEffect, useRef, useState } from 'react';
import { isFramed } from '../frame/host.ts';
import { newsAddress, readState } from './client.ts';

/** What changes all the time is read this often. */
const PAUSE_MS = 1_000;
/** A list or record without a stream of its changes is looked at this often. */
export const POLL_MS = 20_000;
/** After a response that is not a stream, or a stream that the server ended. */
const AGAIN_MS = 5_000;

/**
 * Calls `onNews` when records of the list changed, or only the record with the id, and once when it begins to follow. A page that is hidden follows nothing: it
 * reads again when it is looked at, and takes none of the few connections of a browser.
 */
export function useNews(resource: string, id: string | undefined, onNews: () => void, isFollowing: boolean): void {
  const latest = useRef(onNews);
  useEffect(() => {
    latest.current = onNews;
  });
  useEffect(() => {
    // An event source cannot send the session of a frame.
    if (!isFollowing || isFramed) return undefined;
    let source: EventSource | null = null;
    let again: number | undefined;
    let reading: number | undefined;
    let readAt = -Infinity;

    const read = (): void => {
      reading = undefined;
      readAt = performance.now();
      latest.current();
    };
    const close = (): void => {
      window.clearTimeout(again);
      source?.close();
      source = null;
    };
    const open = (): void => {
      close();
      if (document.visibilityState === 'hidden') return;
      const opened = new EventSource(newsAddress(resource, id));
      source = opened;
      opened.addEventListener('changed', () => {
        reading ??= window.setTimeout(read, Math.max(0, readAt + PAUSE_MS - performance.now()));
      });
      // A connection that broke is opened again by the browser.
      opened.addEventListener('error', (event) => {
        if (opened.readyState !== EventSource.CLOSED && !(event instanceof MessageEvent)) return;
        opened.close();
        // Where the session has ended, the response to any request says so.
        readState().catch(() => {});
        again = window.setTimeout(open, AGAIN_MS);
      });
    };

    open();
    document.addEventListener('visibilitychange', open);
    return () => {
      document.removeEventListener('visibilitychange', open);
      window.clearTimeout(reading);
      close();
    };
  }, [resource, id, isFollowing]);
}

/**
 * As {@link useNews}, for a record that is not read again by itself: whether it may have changed since `read`, what was read of it last. What the stream says
 * as it begins is no change.
 */
export function useMayHaveChanged(resource: string, id: string, read: object | undefined, isFollowing: boolean): boolean {
  const begun = useRef<string | null>(null);
  const [changed, setChanged] = useState<object | undefined>(undefined);
  const hear = (): void => {
    if (begun.current === id) setChanged(read);
    begun.current = id;
  };
  useNews(resource, id, hear, isFollowing);
  return changed !== undefined && changed === read;
}
