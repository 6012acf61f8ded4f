import { Button, Text } from '@mantine/core';
import { Table } from '../values/table.tsx';
import { useElementSize } from '@mantine/hooks';
import { useId, useState, type KeyboardEvent, type PointerEvent } from 'react';
import type { AdminChart } from '../api/shapes.ts';
import { formatDuration, formatNumber, formatPercent } from '../values/format.ts';
import { bucketLabel } from './bucket-time.ts';
import css from './charts.module.css';
import { Plot, PLOT_LEFT } from './plot.tsx';
import { looks, type SeriesLook } from './series-look.ts';

export function formatUnit(unit: AdminChart['unit'], value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (unit === 'percent') return formatPercent(value);
  return unit === 'ms' ? formatDuration(value) : formatNumber(value);
}

export function isEmptyChart({ buckets, series }: AdminChart): boolean {
  return buckets.length === 0 || series.every(({ values }) => values.every((value) => value === null || value === 0));
}

/**
 * A chart that is read by eye, pointer, keyboard and screen reader: the plot is a slider over the buckets whose value
 * is spoken, and the same numbers are one button away as a table.
 */
export function Chart({
  chart,
  level = 3,
  onZoom,
}: {
  readonly chart: AdminChart;
  readonly level?: 2 | 3;
  /** Dragging over the plot chooses a range of time. */
  readonly onZoom?: ((from: string, to: string) => void) | undefined;
}) {
  const id = useId();
  const [pointed, setPointed] = useState<number | null>(null);
  // Another range may have fewer buckets.
  const at = pointed === null ? null : Math.min(pointed, chart.buckets.length - 1);
  const [asTable, setAsTable] = useState(false);
  const Heading = `h${level}` as const;
  const isEmpty = isEmptyChart(chart);
  const look = looks(chart.series);
  return (
    <figure className={css['figure']} aria-labelledby={id}>
      <div className={css['head']}>
        <Text component={Heading} id={id} size="sm" fw={600} m={0}>
          {chart.title}
        </Text>
        {!isEmpty && chart.series.length > 1 && <Legend chart={chart} look={look} />}
      </div>
      {isEmpty ? (
        <div className={css['empty']}>{chart.empty ?? 'No data in this period.'}</div>
      ) : (
        <>
          <Reader chart={chart} look={look} at={at} onMove={setPointed} labelledBy={id} onZoom={onZoom} />
          <Button
            className={css['tableButton']}
            variant="subtle"
            color="gray"
            c="dimmed"
            size="compact-xs"
            aria-expanded={asTable}
            onClick={() => setAsTable(!asTable)}
          >
            {asTable ? 'Hide the table' : 'Show as a table'}
          </Button>
          {asTable && <Numbers chart={chart} />}
        </>
      )}
    </figure>
  );
}

function Swatch({ look, kind }: { readonly look: SeriesLook | undefined; readonly kind: AdminChart['kind'] }) {
  return (
    <svg width="14" height="10" aria-hidden="true">
      {kind === 'bars' ? (
        <rect width="10" height="10" x="2" rx="2" fill={look?.colour} opacity={look?.opacity} />
      ) : (
        <line x1="0" x2="14" y1="5" y2="5" stroke={look?.colour} strokeWidth="2.5" strokeDasharray={look?.dash} opacity={look?.opacity} />
      )}
    </svg>
  );
}

function Legend({ chart, look }: { readonly chart: AdminChart; readonly look: readonly SeriesLook[] }) {
  return (
    <ul className={css['legend']}>
      {chart.series.map((series, index) => (
        <li key={series.name}>
          <Swatch look={look[index]} kind={chart.kind} />
          {series.name}
        </li>
      ))}
    </ul>
  );
}

interface ReaderProps {
  readonly chart: AdminChart;
  readonly look: readonly SeriesLook[];
  readonly at: number | null;
  readonly onMove: (at: number | null) => void;
  readonly labelledBy: string;
  readonly onZoom?: ((from: string, to: string) => void) | undefined;
}

function Reader({ chart, look, at, onMove, labelledBy, onZoom }: ReaderProps) {
  const { ref, width } = useElementSize();
  const last = chart.buckets.length - 1;
  const [dragFrom, setDragFrom] = useState<number | null>(null);
  const dragged = dragFrom === null || at === null ? null : ([Math.min(dragFrom, at), Math.max(dragFrom, at)] as const);
  const spoken = at ?? last;

  const onKeyDown = (event: KeyboardEvent) => {
    const target = { ArrowLeft: spoken - 1, ArrowRight: spoken + 1, Home: 0, End: last }[event.key];
    if (event.key === 'Escape') onMove(null);
    if (target === undefined) return;
    event.preventDefault();
    onMove(Math.min(last, Math.max(0, target)));
  };
  const bucketAt = (event: PointerEvent): number => {
    const box = event.currentTarget.getBoundingClientRect();
    const share = (event.clientX - box.left - PLOT_LEFT) / Math.max(1, box.width - PLOT_LEFT);
    return Math.min(last, Math.max(0, Math.floor(share * chart.buckets.length)));
  };
  const onPointerDown = (event: PointerEvent) => {
    if (onZoom === undefined || event.button !== 0 || event.pointerType === 'touch') return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDragFrom(bucketAt(event));
    onMove(bucketAt(event));
  };
  const onPointerUp = (event: PointerEvent) => {
    const [from, to] = dragFrom === null ? [0, 0] : [Math.min(dragFrom, bucketAt(event)), Math.max(dragFrom, bucketAt(event))];
    setDragFrom(null);
    // A click is not a range.
    if (from === to) return;
    const [first, second] = chart.buckets.map((bucket) => Date.parse(bucket));
    const end = Date.parse(chart.buckets[to] ?? '') + ((second ?? 0) - (first ?? 0));
    onZoom?.(new Date(chart.buckets[from] ?? '').toISOString(), new Date(end).toISOString());
  };

  return (
    <div
      ref={ref}
      className={css['plot']}
      role="slider"
      tabIndex={0}
      aria-labelledby={labelledBy}
      aria-valuemin={0}
      aria-valuemax={last}
      aria-valuenow={spoken}
      aria-valuetext={`${bucketLabel(chart.buckets[spoken] ?? '', chart.buckets)}: ${chart.series
        .map((series) => `${series.name} ${formatUnit(chart.unit, series.values[spoken])}`)
        .join(', ')}`}
      onKeyDown={onKeyDown}
      onFocus={() => onMove(at ?? last)}
      onBlur={() => onMove(null)}
      onPointerDown={onPointerDown}
      onPointerMove={(event) => onMove(bucketAt(event))}
      onPointerUp={onPointerUp}
      onPointerCancel={() => setDragFrom(null)}
      onPointerLeave={() => onMove(null)}
    >
      <Plot chart={chart} look={look} at={at} dragged={dragged} width={width} />
      {at !== null && <Tip chart={chart} look={look} at={at} />}
    </div>
  );
}

function Tip({ chart, look, at }: { readonly chart: AdminChart; readonly look: readonly SeriesLook[]; readonly at: number }) {
  const share = (at + 0.5) / chart.buckets.length;
  const side = share < 0.5 ? { left: `calc(${share * 100}% + 3.25rem)` } : { right: `calc(${(1 - share) * 100}% + 0.75rem)` };
  return (
    <div className={css['tip']} style={side} aria-hidden="true">
      {bucketLabel(chart.buckets[at] ?? '', chart.buckets)}
      <dl>
        {chart.series.map((series, index) => (
          <div key={series.name} style={{ display: 'contents' }}>
            <dt>
              <Swatch look={look[index]} kind={chart.kind} />
              {series.name}
            </dt>
            <dd>{formatUnit(chart.unit, series.values[at])}</dd>
          </div>
        ))}
      </dl>
    </div>
  );
}

function Numbers({ chart }: { readonly chart: AdminChart }) {
  return (
    <div className={css['table']} tabIndex={0} role="region" aria-label={`${chart.title}, as a table`}>
      <Table>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>From</Table.Th>
            {chart.series.map((series) => (
              <Table.Th key={series.name} ta="end">
                {series.name}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {chart.buckets.map((bucket, index) => (
            <Table.Tr key={bucket}>
              <Table.Td>{bucketLabel(bucket, chart.buckets)}</Table.Td>
              {chart.series.map((series) => (
                <Table.Td key={series.name} ta="end">
                  {formatUnit(chart.unit, series.values[index])}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}
