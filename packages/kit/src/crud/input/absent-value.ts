import type { ColumnSettings } from '../../db/declare/column.ts';

/** What a column gets when a client leaves it out: its default, else null; undefined when it has neither. */
export function absentValue(settings: ColumnSettings, now: Date): unknown {
  const { dbDefault, nullable } = settings;
  if (settings.default !== undefined) return settings.default({ now: () => now });
  if (dbDefault !== undefined) {
    if ('value' in dbDefault)
      return settings.kind === 'json' || settings.kind === 'array'
        ? (JSON.parse(String(dbDefault.value)) as unknown)
        : settings.kind === 'bigint'
          ? BigInt(dbDefault.value)
          : dbDefault.value;
    return dbDefault.make === 'now' ? now : crypto.randomUUID();
  }
  return nullable ? null : undefined;
}
