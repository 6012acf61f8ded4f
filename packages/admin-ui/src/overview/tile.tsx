import type { AdminTile } from '../api/shapes.ts';
import { listHash } from '../routing/location.ts';
import { formatDuration, formatNumber, formatPercent } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import css from './overview.module.css';

export function Tile({ tile }: { readonly tile: AdminTile }) {
  const content = (
    <>
      <span className={css['tileLabel']}>{tile.label}</span>
      <span className={css['tileValue']}>{tileValue(tile)}</span>
      {tile.hint !== undefined && (
        <span className={css['tileHint']}>
          <Prose text={tile.hint} />
        </span>
      )}
    </>
  );
  if (tile.link === undefined) {
    return (
      <div className={css['tile']} data-tone={tile.tone}>
        {content}
      </div>
    );
  }
  return (
    <a className={css['tile']} data-tone={tile.tone} href={listHash(tile.link.resource, tile.link.filters)}>
      {content}
    </a>
  );
}

function tileValue({ value, unit }: AdminTile): string {
  if (value === null) return '–';
  if (typeof value === 'string') return value;
  if (unit === 'percent') return formatPercent(value);
  return unit === 'ms' || unit === 'age_ms' ? formatDuration(value) : formatNumber(value);
}
