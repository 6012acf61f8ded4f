import { Popover } from '@mantine/core';
import { lazy, Suspense, type ReactNode } from 'react';
import type { AdminRow } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import css from './list.module.css';

const CellEditor = lazy(async () => ({ default: (await import('./cell-editor.tsx')).CellEditor }));

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
    <Popover
      opened={editing !== null}
      onChange={(isOpen) => (isOpen ? undefined : onClose())}
      // The cell is no button of its own, so it has no roles of one.
      withRoles={false}
      closeOnClickOutside={false}
      zIndex={150}
      position="bottom-start"
      withinPortal
      shadow="md"
      width={320}
    >
      <Popover.Target>
        <span className={css['editable']}>
          {children}
          <button type="button" tabIndex={-1} className={css['cellEdit']} aria-label={`Edit ${label} of ${row.title}`} onClick={onEdit}>
            <Icon name="edit" size={14} />
          </button>
        </span>
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={`Edit ${row.title}`}>
        {editing !== null && (
          <Suspense>
            <CellEditor resource={resource} row={row} names={editing} onClose={onClose} />
          </Suspense>
        )}
      </Popover.Dropdown>
    </Popover>
  );
}
