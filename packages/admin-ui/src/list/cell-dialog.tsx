import { Popover } from '@mantine/core';
import { CellEditor, type CellEditorProps } from './cell-editor.tsx';
import css from './list.module.css';

/** The form beside a cell. What it stands at lies over the cell and takes no clicks. */
export function CellDialog(props: CellEditorProps) {
  return (
    <Popover
      opened
      onChange={(isOpen) => (isOpen ? undefined : props.onClose())}
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
        <span className={css['cellArea']} />
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={`Edit ${props.row.title}`}>
        <CellEditor {...props} />
      </Popover.Dropdown>
    </Popover>
  );
}
