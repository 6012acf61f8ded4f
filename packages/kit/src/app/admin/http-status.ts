import { nodeHttp } from '../../http/exchange/node-http.ts';
import type { AdminState, AdminTone } from './shapes.ts';

const TONES: Readonly<Record<string, AdminTone>> = { 1: 'neutral', 2: 'good', 3: 'neutral', 4: 'warning', 5: 'bad' };

/** A status in the words of HTTP: `404 Not Found`. Null where there was no response. */
export function httpStatus(status: unknown): AdminState | null {
  if (typeof status !== 'number') return null;
  const words = nodeHttp.STATUS_CODES[status];
  return { value: words === undefined ? String(status) : `${status} ${words}`, tone: TONES[String(status).charAt(0)] ?? 'neutral' };
}
