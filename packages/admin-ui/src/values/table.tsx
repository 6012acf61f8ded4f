import { clsx } from 'clsx';
import type { ComponentProps } from 'react';
import css from './table.module.css';

type CellProps = ComponentProps<'td'> & {
  readonly ta?: 'start' | 'end' | undefined;
  readonly w?: number | string;
  readonly p?: number;
};

/** A plain table. That of the component kit brings its scroll area and a library for positions, which the first load has no use for. */
export function Table({ className, ...rest }: ComponentProps<'table'>) {
  return <table className={clsx(css['table'], className)} {...rest} />;
}

function Th({ ta, w, p, ...rest }: CellProps) {
  return <th style={{ textAlign: ta, width: w, padding: p }} data-end={ta === 'end' ? '' : undefined} {...rest} />;
}

function Td({ ta, w, p, ...rest }: CellProps) {
  return <td style={{ textAlign: ta, width: w, padding: p }} data-end={ta === 'end' ? '' : undefined} {...rest} />;
}

Table.Th = Th;
Table.Td = Td;
Table.Tr = 'tr' as const;
Table.Thead = 'thead' as const;
Table.Tbody = 'tbody' as const;
