import type { ResourceDescription } from '../../crud/inspect/describe-resource.ts';
import type { ResponseFacts } from '../../http/exchange/compiled-route.ts';
import type { Branch } from '../terminal/terminal.ts';

/** A resource as `kit inspect` draws it: who reaches which rows and fields, by which operations, and what they cost. */
export function resourceTree(
  described: ResourceDescription,
  sql: readonly string[],
  backfills: readonly string[] = [],
  data: readonly string[] = [],
): Branch {
  const { resource, table, controller, rows, fields, operations, relations, filters, ordering, search, unindexed } = described;
  return {
    text: `${resource} (table ${table}, ${controller})`,
    below: [
      group(
        'rows',
        rows.map((text) => ({ text })),
      ),
      group(
        'fields',
        fields.map((each) => ({ text: `${each.name}: visible to ${each.visible_to}, writable by ${each.writable_by}` })),
      ),
      group('operations', operations.map(operation)),
      group(
        'relations',
        relations.map((each) => ({
          text: `${each.name}: ${each.kind} ${each.resource} by ${each.column}${each.expand ? ', can be expanded' : ''}`,
        })),
      ),
      group(
        'filters',
        Object.entries(filters).map(([column, operators]) => ({ text: `${column}: ${operators.join(', ')}` })),
      ),
      group(
        'ordering',
        ordering.map((text) => ({ text })),
      ),
      search === null ? [] : [{ text: `search: ${search.backend} of ${search.columns.join(', ')}` }],
      group(
        'data',
        data.map((text) => ({ text })),
      ),
      group(
        'back-fills',
        backfills.map((text) => ({ text })),
      ),
      group(
        'warnings',
        unindexed.map((each) => ({ text: `W008 no index begins with ${each.table}.${each.column} (${each.usedBy})` })),
      ),
      group(
        'sql of the list',
        sql.map((text) => ({ text })),
      ),
    ].flat(),
  };
}

function group(text: string, below: readonly Branch[]): Branch[] {
  return below.length === 0 ? [] : [{ text, below }];
}

function operation(each: ResourceDescription['operations'][number]): Branch {
  const facts: readonly (readonly [string, string | null])[] = [
    ['permission', each.permission],
    ['scope', each.scope],
    ['throttles', each.throttles.join(', ') || null],
    ['transaction', each.transaction ? 'one for the whole request' : null],
    ['idempotency key', each.idempotency === 'none' ? null : each.idempotency],
    ['statements', each.statements],
    ['versions', versionsText(each.responses)],
    ['cache', cacheText(each.responses)],
  ];
  const below = facts.flatMap(([name, value]) => (value === null ? [] : [{ text: `${name}: ${value}` }]));
  return { text: `${each.name}: ${each.method} ${each.path}`, below };
}

/** Versions of the responses of a route; null without. */
export function versionsText({ versions }: ResponseFacts): string | null {
  if (versions === undefined) return null;
  return versions.supported.map((name) => (name === versions.default ? `${name} (default)` : name)).join(', ');
}

/** How responses of a route are cached; null where they are not. */
export function cacheText({ cache }: ResponseFacts): string | null {
  return cache === undefined ? null : [`${cache.maxAgeMs / 1000} s`, ...cache.tags].join(', ');
}
