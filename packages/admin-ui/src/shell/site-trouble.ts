import type { Connection } from '../api/connection.ts';
import { explain, isSessionLost, toFault } from '../api/fault.ts';
import type { AdminSiteState, AdminTone } from '../api/shapes.ts';
import { formatDuration } from '../values/format.ts';

/** Without an answer for so long, nothing on the page can be trusted. */
const SILENCE_MS_MAX = 30_000;
/** A restart is told for so long: then everything on the page is newer. */
const RESTART_MS = 120_000;

export interface SiteTrouble {
  readonly tone: AdminTone;
  readonly sentences: readonly string[];
  /** What helps; absent: to read again. */
  readonly remedy?: 'reload';
}

/** What the page knows about the server. */
export interface SiteFacts {
  readonly connection: Connection;
  readonly silentMs: number;
  readonly state: AdminSiteState | undefined;
  readonly error: unknown;
  /** A change is on its way whose answer is overdue. */
  readonly isOverdue: boolean;
  /** When the page first had the state, by the server's clock; null: it has not. */
  readonly since: string | null;
  /** That the page was made with. */
  readonly version: string;
}

/** What is wrong with the site, or was until now; null: nothing. */
export function troubleOf(facts: SiteFacts): SiteTrouble | null {
  const { connection, state, error } = facts;
  const overdue = facts.isOverdue ? ['No answer yet; the change may have been saved. It is sent again and done once.'] : [];
  if (connection.state !== 'answering') {
    const isLong = facts.silentMs >= SILENCE_MS_MAX;
    const data = isLong ? 'Nothing on this page can be trusted to be current.' : 'The data may be outdated; retrying every few seconds.';
    return { tone: isLong ? 'bad' : 'warning', sentences: [silence(connection.state, facts.silentMs), data, ...overdue] };
  }
  if (isEnded(error)) return { tone: 'bad', sentences: ['Your session has ended. Log in again to see current data.', ...overdue] };
  const fault = error === null ? null : toFault(error);
  const failed = fault === null ? [] : [`The state of the site cannot be read. ${explain(fault)}`];
  const parts = (fault === null ? (state?.parts ?? []) : []).filter(({ tone }) => tone === 'bad' || tone === 'warning');
  const news = newsOf(facts);
  const sentences = [...parts.map(({ name, text }) => `${name}: ${text}`), ...failed, ...overdue, ...news.sentences];
  if (sentences.length === 0) return null;
  const isBad = failed.length > 0 || parts.some(({ tone }) => tone === 'bad');
  const tone = isBad ? 'bad' : parts.length + overdue.length > 0 ? 'warning' : 'info';
  return { tone, sentences, ...(news.isNewer && !isBad ? { remedy: 'reload' } : {}) };
}

export function isEnded(error: unknown): boolean {
  return error !== null && isSessionLost(toFault(error));
}

function silence(state: Exclude<Connection['state'], 'answering'>, silentMs: number): string {
  if (state === 'offline') return 'You are offline: this device has no network.';
  if (state === 'unreachable') return 'The server cannot be reached.';
  return `The server has not answered for ${formatDuration(Math.floor(silentMs / 1000) * 1000)}.`;
}

/** What changed at the server while the page was open. */
function newsOf({ state, since, version }: SiteFacts): { readonly sentences: readonly string[]; readonly isNewer: boolean } {
  if (state?.process === undefined || since === null) return { sentences: [], isNewer: false };
  const { started_at: started, version: running } = state.process;
  const ageMs = Date.parse(state.at) - Date.parse(started);
  const isNewer = running !== version;
  const isRestarted = started > since && ageMs < RESTART_MS;
  return {
    isNewer,
    sentences: [
      ...(isRestarted ? [`The server was restarted ${formatDuration(Math.floor(ageMs / 1000) * 1000)} ago.`] : []),
      ...(isNewer ? [`Version ${running} is running; this page is of version ${version}. Load the page again.`] : []),
    ],
  };
}
