import type { AdminOverview } from '../../app/admin/sections.ts';
import { csvHeader, csvWriter } from '../../crud/files/csv-text.ts';

const COLUMNS = ['part', 'chart', 'unit', 'series', 'from', 'value'].map((name) => ({ path: [name], settings: undefined }));
const lines = csvWriter(COLUMNS, true);

/** The numbers of the overview, one for each line. What its tables list, the lists export themselves. */
export function overviewFile(parts: readonly AdminOverview[]): string {
  const rows = parts.flatMap(({ title: part, charts }) =>
    charts.flatMap(({ title: chart, unit, buckets, series }) =>
      series.flatMap(({ name, values }) =>
        buckets.map((from, index) => ({ part, chart, unit, series: name, from, value: values[index] ?? null })),
      ),
    ),
  );
  return csvHeader(COLUMNS) + lines(rows);
}
