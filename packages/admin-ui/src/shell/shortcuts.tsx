import { Modal, Table } from '@mantine/core';
import { isApple } from './platform.ts';

const SHORTCUTS = (): readonly (readonly [keys: string, what: string])[] => [
  [isApple() ? '⌘ K' : 'Ctrl K', 'Search screens, records and actions'],
  ['/', 'Search in the list'],
  ['?', 'Show these shortcuts'],
  ['Shift and click', 'Select all records between two check boxes'],
  ['F2', 'Edit the row in the list'],
  ['Enter', 'Save the value, run the chosen action'],
  ['Esc', 'Cancel the edit, close the dialog'],
  ['← →', 'Read a chart bar by bar'],
];

/** What the keyboard does. */
export function ShortcutSheet({ onClose }: { readonly onClose: () => void }) {
  return (
    <Modal opened onClose={onClose} title="Keyboard shortcuts" centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Table fz="sm" verticalSpacing={6}>
        <Table.Tbody>
          {SHORTCUTS().map(([keys, what]) => (
            <Table.Tr key={keys}>
              <Table.Th scope="row" w="9rem">
                <kbd>{keys}</kbd>
              </Table.Th>
              <Table.Td>{what}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Modal>
  );
}
