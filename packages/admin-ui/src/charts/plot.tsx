import type { AdminChart } from '../api/shapes.ts';
import { formatDuration, formatNumber } from '../values/format.ts';
import { axisLabel } from './bucket-time.ts';
import css from './charts.module.css';
import { CHARACTER_WIDTH, niceTicks, pieces, placedLabels, stack } from './scale.ts';
import type { SeriesLook } from './series-look.ts';

/** Room for the labels of the value axis, in pixels. */
export const PLOT_LEFT = 44;
const TOP = 8;
const HEIGHT = 176;
const BOTTOM = 22;
const BAR_WIDTH_MAX = 28;

interface PlotProps {
  readonly chart: AdminChart;
  readonly look: readonly SeriesLook[];
  readonly at: number | null;
  /** The first and the last bucket of what is being chosen. */
  readonly dragged: readonly [number, number] | null;
  readonly width: number;
}

/** The drawing alone; what it says is spoken by what is around it. */
export function Plot({ chart, look, at, dragged, width }: PlotProps) {
  const { buckets, kind, unit } = chart;
  const values = chart.series.map((series) => series.values);
  const stacks = stack(values, buckets.length);
  const largest =
    kind === 'bars' ? Math.max(0, ...stacks.flat().map(({ to }) => to)) : Math.max(0, ...values.flat().filter((value) => value !== null));
  const ticks = unit === 'percent' ? [0, 25, 50, 75, 100] : niceTicks(largest, unit === 'count');
  const top = ticks.at(-1) ?? 1;
  const inner = Math.max(0, width - PLOT_LEFT);
  const step = inner / Math.max(1, buckets.length);
  const x = (bucket: number): number => PLOT_LEFT + step * bucket;
  const y = (value: number): number => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / top);
  const bar = Math.min(BAR_WIDTH_MAX, step * 0.72);
  const axis = (tick: number): string => (unit === 'percent' ? `${tick} %` : unit === 'ms' ? formatDuration(tick) : formatNumber(tick));

  return (
    <svg className={css['svg']} height={HEIGHT} viewBox={`0 0 ${Math.max(1, width)} ${HEIGHT}`} aria-hidden="true" focusable="false">
      {ticks.map((tick) => (
        <g key={tick}>
          <line className={css['grid']} x1={PLOT_LEFT} x2={PLOT_LEFT + inner} y1={y(tick)} y2={y(tick)} />
          <text className={css['label']} x={PLOT_LEFT - 8} y={y(tick) + 4} textAnchor="end">
            {axis(tick)}
          </text>
        </g>
      ))}
      {placedLabels(
        buckets.map((bucket) => axisLabel(bucket, buckets)),
        inner,
      ).map(({ bucket, text, x: from }) => (
        <text
          key={bucket}
          className={css['label']}
          x={PLOT_LEFT + from + (text.length * CHARACTER_WIDTH) / 2}
          y={HEIGHT - 5}
          textAnchor="middle"
        >
          {text}
        </text>
      ))}
      {dragged !== null && (
        <rect
          className={css['dragged']}
          x={x(dragged[0])}
          width={step * (dragged[1] - dragged[0] + 1)}
          y={TOP}
          height={HEIGHT - TOP - BOTTOM}
        />
      )}
      {at !== null && <rect className={css['cursor']} x={x(at)} width={step} y={TOP} height={HEIGHT - TOP - BOTTOM} />}
      {kind === 'bars'
        ? stacks.map((pieces, series) =>
            pieces.map(({ from, to }, bucket) =>
              to > from ? (
                <rect
                  key={`${series}-${bucket}`}
                  x={x(bucket) + (step - bar) / 2}
                  width={bar}
                  y={y(to)}
                  // A single failure among thousands is still one pixel high.
                  height={Math.max(1, y(from) - y(to))}
                  rx={Math.min(2, bar / 4)}
                  fill={look[series]?.colour}
                  opacity={look[series]?.opacity}
                />
              ) : null,
            ),
          )
        : values.map((line, series) =>
            pieces(line).map((piece) =>
              piece.length === 1 ? (
                <circle
                  key={`${series}-${piece[0]?.at}`}
                  cx={x((piece[0]?.at ?? 0) + 0.5)}
                  cy={y(piece[0]?.value ?? 0)}
                  r={2.5}
                  fill={look[series]?.colour}
                  opacity={look[series]?.opacity}
                />
              ) : (
                <path
                  key={`${series}-${piece[0]?.at}`}
                  className={css['line']}
                  d={piece
                    .map((point, index) => `${index === 0 ? 'M' : 'L'}${x(point.at + 0.5).toFixed(1)} ${y(point.value).toFixed(1)}`)
                    .join('')}
                  stroke={look[series]?.colour}
                  strokeDasharray={look[series]?.dash}
                  opacity={look[series]?.opacity}
                />
              ),
            ),
          )}
    </svg>
  );
}
