import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { updateRecord } from '../api/client.ts';
import type { AdminFieldChange, AdminRecord, AdminResourceShape } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { toInput } from '../forms/form-values.ts';
import { inputText } from '../forms/merge.ts';

interface RestoreDialogProps {
  readonly resource: AdminResourceShape;
  readonly record: AdminRecord;
  readonly change: AdminFieldChange;
  /** Null: nothing was changed. */
  readonly onClose: (message: string | null) => void;
}

/** Puts the value that a field had before a change back: an ordinary change of its own, with an audit entry. */
export function RestoreDialog({ resource, record, change: { name, restore }, onClose }: RestoreDialogProps) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const field = record.form?.fields.find((each) => each.name === name);
  const shown = (value: unknown): string => (field === undefined ? '' : inputText(toInput(field, value)));
  const save = async (): Promise<void> => {
    setBusy(true);
    setFault(null);
    try {
      const { message } = await updateRecord(resource.name, record.id, { fields: { [name]: restore }, tag: record.form?.tag });
      onClose(message);
    } catch (error) {
      setFault(error);
      setBusy(false);
    }
  };
  return (
    <Modal
      opened
      onClose={() => onClose(null)}
      title={`Restore ${field?.label ?? name}?`}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack gap="md">
        {fault !== null && <FaultNotice error={fault} />}
        <Text size="sm">Now: {shown(record.form?.values[name])}</Text>
        <Text size="sm">Restored: {shown(restore)}</Text>
        <Group justify="flex-end" gap="sm">
          <Button variant="default" data-autofocus onClick={() => onClose(null)}>
            Cancel
          </Button>
          <Button loading={busy} onClick={() => void save()}>
            Restore
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
