import { statfs } from 'node:fs/promises';
import type { AdminContext } from '../../app/admin/declaration.ts';
import type { AdminOverview, AdminTile } from '../../app/admin/sections.ts';
import type { AdminRow, AdminTone } from '../../app/admin/shapes.ts';
import type { StoppedReads } from './stopped-reads.ts';

/** A statement that reads no table: a slower answer means a busy or distant server. */
const SLOW_MS = 250;
/** Databases need room to grow and to clean up: below these shares of the disk there is little time left. */
const FREE_WARNING = 15;
const FREE_BAD = 5;

/** The databases, the reads that they stopped, the disk of this process, and every tile of the modules that needs attention, as alerts. */
export async function healthPart(context: AdminContext, stopped: StoppedReads, parts: readonly AdminOverview[]): Promise<AdminOverview> {
  const tiles = [...(await databaseTiles(context)), stopped.tile(context.clock.now()), ...(await diskTiles(process.cwd()))];
  return { title: 'Health', tiles, charts: [], tables: [alertsTable([{ title: 'Health', tiles }, ...parts])] };
}

async function databaseTiles({ databases, log }: AdminContext): Promise<AdminTile[]> {
  return Promise.all(
    Object.entries(databases).map(async ([name, database]): Promise<AdminTile> => {
      const label = name === 'default' ? 'Database' : `Database ${name}`;
      const began = performance.now();
      try {
        await database.query('select 1 as one');
        return databaseTile(label, performance.now() - began);
      } catch (error) {
        log.warn({ err: error, database: name }, 'admin: could not query a database for the overview');
        return { label, value: 'not reachable', tone: 'bad', hint: 'The log has the cause.' };
      }
    }),
  );
}

export function databaseTile(label: string, ms: number): AdminTile {
  const hint = 'Time of a statement that reads no table.';
  return { label, value: Math.round(ms), unit: 'ms', tone: ms > SLOW_MS ? 'warning' : 'good', hint };
}

async function diskTiles(folder: string): Promise<AdminTile[]> {
  try {
    const { bavail, blocks } = await statfs(folder);
    return blocks === 0 ? [] : [diskTile((bavail / blocks) * 100)];
  } catch {
    // Not every file system tells; nothing else depends on it.
    return [];
  }
}

export function diskTile(freePercent: number): AdminTile {
  const tone = freePercent < FREE_BAD ? 'bad' : freePercent < FREE_WARNING ? 'warning' : 'good';
  return { label: 'Disk free', value: Math.round(freePercent), unit: 'percent', tone, hint: 'Free space on the disk of this process.' };
}

const SEVERITY: readonly AdminTone[] = ['bad', 'warning'];

/** A number of the overview that needs attention. */
export interface Alert {
  /** `Jobs: Oldest ready`. */
  readonly name: string;
  readonly severity: 'bad' | 'warning';
  /** The number, as the page shows it. */
  readonly value: string;
  readonly hint: string | null;
  /** The list of what it counts. */
  readonly link: AdminTile['link'];
}

/** What is wrong now, the worst first. */
export function alertsOf(parts: readonly Pick<AdminOverview, 'title' | 'tiles'>[]): readonly Alert[] {
  return parts
    .flatMap(({ title, tiles }) => tiles.map((tile) => ({ title, tile })))
    .flatMap(({ title, tile: { label, value, unit, tone, hint, link } }): Alert[] => {
      if (tone !== 'bad' && tone !== 'warning') return [];
      const text =
        unit === 'percent'
          ? `${typeof value === 'number' ? Math.round(value * 10) / 10 : (value ?? '–')} %`
          : unit === 'ms'
            ? `${value ?? '–'} ms`
            : unit === 'age_ms'
              ? ageOf(value)
              : String(value ?? '–');
      // A cell of a table is plain text.
      return [{ name: `${title}: ${label}`, severity: tone, value: text, hint: hint?.replaceAll('`', '') ?? null, link }];
    })
    .toSorted((a, b) => SEVERITY.indexOf(a.severity) - SEVERITY.indexOf(b.severity));
}

export function alertsTable(parts: readonly Pick<AdminOverview, 'title' | 'tiles'>[]): AdminOverview['tables'][number] {
  const rows = alertsOf(parts).map(({ name, severity, value, hint, link }): AdminRow => ({
    id: name,
    title: name,
    values: {
      state: { value: severity === 'bad' ? 'critical' : 'warning', tone: severity },
      what: link === undefined ? name : { ...link, text: name },
      value,
      hint,
    },
  }));
  return {
    kind: 'table',
    title: 'Alerts',
    urgent: true,
    columns: [
      { name: 'state', label: 'Severity', kind: 'state' },
      { name: 'what', label: 'Alert', kind: 'link' },
      { name: 'value', label: 'Now', kind: 'number' },
      { name: 'hint', label: 'Description', kind: 'text', secondary: true },
    ],
    rows,
    empty: 'No alert: databases, disk, queues and deliveries are within their limits.',
  };
}

function ageOf(value: AdminTile['value']): string {
  const minutes = Math.floor(Number(value) / 60_000);
  if (minutes < 1) return 'less than a minute';
  const hours = Math.floor(minutes / 60);
  const days = Math.floor(hours / 24);
  const parts = days > 0 ? [`${days} d`, `${hours % 24} h`] : hours > 0 ? [`${hours} h`, `${minutes % 60} min`] : [`${minutes} min`];
  return parts.filter((part) => !part.startsWith('0')).join(' ');
}
