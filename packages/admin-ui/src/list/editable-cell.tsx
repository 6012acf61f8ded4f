import { type ReactNode } from 'react';
import type { AdminRow } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { later } from '../later.ts';
import css from './list.module.css';
import { LateOver } from '../feedback/late.tsx';

const CellDialog = later(async () => (await import('./cell-dialog.tsx')).CellDialog);

interface EditableCellProps {
  readonly resource: string;
  readonly row: Pick<AdminRow, 'id' | 'title'>;
  readonly label: string;
  /** The fields that are edited here; null: they are not now. */
  readonly editing: readonly string[] | null;
  readonly onEdit: () => void;
  readonly onClose: () => void;
  readonly children: ReactNode;
}

/** A value with a button to change it where it stands. The keyboard has F2 on the name of the row: a stop at each cell would be in everybody's way. */
export function EditableCell({ resource, row, label, editing, onEdit, onClose, children }: EditableCellProps) {
  return (
    <span className={css['editable']}>
      {children}
      <button type="button" tabIndex={-1} className={css['cellEdit']} aria-label={`Edit ${label} of ${row.title}`} onClick={onEdit}>
        <Icon name="edit" size={14} />
      </button>
      {editing !== null && (
        <LateOver>
          <CellDialog resource={resource} row={row} names={editing} onClose={onClose} />
        </LateOver>
      )}
    </span>
  );
}
