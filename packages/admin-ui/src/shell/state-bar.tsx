import { Button } from '@mantine/core';
import { useQuery, useQueryClient, type QueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import { readState } from '../api/client.ts';
import { markSilence, useConnection, useNetwork, useOverdue, type Connection } from '../api/connection.ts';
import type { AdminSiteState, AdminTone } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { useSession } from '../session/session-gate.tsx';
import { Prose } from '../values/prose.tsx';
import { Time } from '../values/time.tsx';
import css from './shell.module.css';
import { isEnded, troubleOf } from './site-trouble.ts';

const REFRESH_MS = 10_000;
/** While the server is away. */
const RETRY_MS = 5_000;
/** An answer that takes longer is a missed refresh. */
const LATE_MS = 5_000;

const STATE = 'state';
/** Not what a page shows: who is logged in, the bar itself, and forms, which are read once. */
const NOT_SHOWN: ReadonlySet<unknown> = new Set([STATE, 'session', 'view', 'edit', 'choice', 'choices']);

/** How old the page is, and whether server, database and workers work. */
export function StateBar({ onTone }: { readonly onTone: (tone: AdminTone) => void }) {
  const client = useQueryClient();
  const connection = useConnection();
  const isOverdue = useOverdue();
  const silentMs = useSilence(connection);
  const isAnswering = connection.state === 'answering';
  const query = useQuery({
    queryKey: [STATE],
    queryFn: ({ signal }) => readInTime(signal),
    // After the session has ended, every answer is a 401 until somebody logs in, which reads everything again.
    refetchInterval: ({ state }) => (isEnded(state.error) ? false : isAnswering ? REFRESH_MS : RETRY_MS),
    retry: false,
  });
  const updatedAt = useSyncExternalStore(
    (listener) => client.getQueryCache().subscribe(listener),
    () => oldestUpdate(client),
  );
  // What was missed meanwhile.
  useEffect(() => {
    if (isAnswering)
      void client.refetchQueries({
        type: 'active',
        predicate: ({ queryKey, state }) => !NOT_SHOWN.has(queryKey[0]) && state.error !== null,
      });
  }, [isAnswering, client]);

  const { refetch } = query;
  useNetwork(useCallback(() => void refetch(), [refetch]));

  const { site } = useSession();
  const [since, setSince] = useState<string | null>(null);
  if (since === null && query.data !== undefined) setSince(query.data.at);
  const trouble = troubleOf({ connection, silentMs, state: query.data, error: query.error, isOverdue, since, version: site.version });
  const tone = trouble?.tone ?? 'good';
  useEffect(() => onTone(tone), [tone, onTone]);
  const parts = query.data?.parts ?? [];
  return (
    <section className={trouble === null ? css['state'] : css['banner']} data-tone={tone} aria-label="Site health">
      {trouble === null ? (
        <span title={parts.map(({ name, text }) => `${name}: ${text}`).join('\n')}>
          <span className={css['dot']} aria-hidden="true" />
          {query.data === undefined ? 'Server …' : `${['Server', ...parts.map(({ name }) => name)].join(', ')}: working`}
        </span>
      ) : (
        <>
          <Icon name={!isAnswering ? 'offline' : tone === 'info' ? 'info' : 'warning'} />
          <span role="status">
            {trouble.sentences.map((sentence) => (
              <span key={sentence}>
                <Prose text={sentence} />{' '}
              </span>
            ))}
          </span>
          {trouble.remedy === 'reload' ? (
            <Button size="compact-sm" variant="default" onClick={() => window.location.reload()}>
              Load again
            </Button>
          ) : (
            trouble.tone !== 'info' && (
              <Button size="compact-sm" variant="default" onClick={() => void client.refetchQueries({ type: 'active', predicate: isRead })}>
                Try now
              </Button>
            )
          )}
        </>
      )}
      {updatedAt > 0 && (
        <span className={css['age']}>
          Data of this page: <Time iso={new Date(updatedAt).toISOString()} />
        </span>
      )}
    </section>
  );
}

async function readInTime(signal: AbortSignal): Promise<AdminSiteState> {
  const late = window.setTimeout(() => markSilence('silent'), LATE_MS);
  try {
    return await readState(signal);
  } finally {
    window.clearTimeout(late);
  }
}

/** A form is not read again: what is being typed is compared with what it was made from. */
function isRead({ queryKey }: { readonly queryKey: readonly unknown[] }): boolean {
  return queryKey[0] !== 'edit';
}

/** Of what the page shows, the oldest; 0: nothing is shown yet. */
function oldestUpdate(client: QueryClient): number {
  const times = client
    .getQueryCache()
    .findAll({ type: 'active' })
    .filter(({ queryKey, state }) => !NOT_SHOWN.has(queryKey[0]) && state.dataUpdatedAt > 0)
    .map(({ state }) => state.dataUpdatedAt);
  return times.length === 0 ? 0 : Math.min(...times);
}

/** How long the server has been silent, each second. */
function useSilence(connection: Connection): number {
  const since = connection.state === 'answering' ? null : connection.since;
  const [now, setNow] = useState(0);
  useEffect(() => {
    if (since === null) return undefined;
    setNow(performance.now());
    const timer = window.setInterval(() => setNow(performance.now()), 1000);
    return () => window.clearInterval(timer);
  }, [since]);
  return since === null ? 0 : Math.max(0, now - since);
}
