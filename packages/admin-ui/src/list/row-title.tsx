import { Anchor } from '@mantine/core';
import type { AdminColumn, AdminRow } from '../api/shapes.ts';
import { hashOf } from '../routing/location.ts';
import { plain, Value } from '../values/value.tsx';
import css from './list.module.css';

interface RowTitleProps {
  readonly resource: string;
  readonly column: AdminColumn;
  readonly row: AdminRow;
}

/** The first value of a row leads to its record, also where it would lead elsewhere in another column. */
export function RowTitle({ resource, column, row }: RowTitleProps) {
  const value = row.values[column.name];
  const text = value === undefined || value === null || value === '' ? row.title : plain(value);
  const isText = column.kind === 'link' || text === row.title;
  return (
    <Anchor className={css['rowLink'] ?? ''} fz="sm" href={hashOf({ page: 'record', resource, id: row.id })}>
      <Value kind={isText ? 'text' : column.kind} value={isText ? text : value} label={column.label} />
      {text !== row.title && <span className="visually-hidden">, {row.title}</span>}
    </Anchor>
  );
}
