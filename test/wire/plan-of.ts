import type { App } from '../../packages/kit/src/app/declare/module.ts';
import type { QueryEvent } from '../../packages/kit/src/db/engine/query-observer.ts';

const plans = new Map<string, string>();

/**
 * What one statement does, in a form that survives other columns and another formatting: `select api_keys by api_keys_of_owner`. Indexes are
 * those that the database would use for a large table; a table that is read as a whole has `scan`.
 */
export async function planOf(app: App, { sql, dialect, using }: QueryEvent): Promise<string> {
  const verb =
    /^\s*(?:with\b[\s\S]*?\)\s*)?(select|insert|update|delete|begin|commit|rollback|savepoint|release|set|lock)/i
      .exec(sql)?.[1]
      ?.toLowerCase() ?? 'other';
  if (!/^(?:select|insert|update|delete)$/.test(verb)) return verb;
  const known = `${dialect} ${sql}`;
  let plan = plans.get(known);
  if (plan === undefined) {
    const database = app.databases[using];
    const tables = [...new Set([...sql.matchAll(/\b(?:from|into|update|join)\s+"?([a-z_]\w*)"?/gi)].map(([, name = '']) => name))].filter(
      (name) => !/^(?:of|only|set|lateral|unnest|json_each|jsonb?_array_elements)$/i.test(name),
    );
    const used = database === undefined || database.closed ? [] : await indexesOf(database, dialect, sql);
    plan = [verb, tables.join(' '), ...(used.length === 0 ? [] : ['by', used.join(' ')])].join(' ');
    plans.set(known, plan);
  }
  return plan;
}

async function indexesOf(database: App['databases'][string], dialect: QueryEvent['dialect'], sql: string): Promise<string[]> {
  try {
    if (dialect === 'sqlite') {
      const rows = await database.query<{ detail: string }>(`explain query plan ${sql}`, parametersOf(sql));
      return names(
        rows.map(({ detail }) => detail),
        /USING (?:COVERING )?INDEX (\S+)|USING (INTEGER PRIMARY KEY)|^(SCAN)\b(?!.*USING)/,
      );
    }
    return await database.transaction(async (tx) => {
      await tx.query('set local enable_seqscan = off');
      const rows = await tx.query<Record<string, string>>(`explain (generic_plan, costs off) ${sql}`);
      return names(
        rows.flatMap((row) => Object.values(row)),
        /(?:Index(?: Only)? Scan(?: Backward)? using|Bitmap Index Scan on) (\S+)|(Seq Scan)/,
      );
    });
  } catch {
    // A statement that cannot be explained alone, such as one about a temporary table, is known by its verb and tables.
    return [];
  }
}

function names(lines: readonly string[], pattern: RegExp): string[] {
  const found = lines.flatMap((line) => {
    const match = pattern.exec(line);
    if (match === null) return [];
    const name = match.slice(1).find((each) => each !== undefined) ?? '';
    return [/^(?:SCAN|Seq Scan)$/.test(name) ? 'scan' : name];
  });
  return [...new Set(found)];
}

function parametersOf(sql: string): null[] {
  const highest = Math.max(0, ...[...sql.matchAll(/\$(\d+)/g)].map(([, digits]) => Number(digits)));
  return Array.from({ length: highest }, () => null);
}
