import { Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { removeRecord } from '../api/client.ts';
import type { AdminResourceShape, AdminResult } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { lowerFirst } from '../values/format.ts';
import type { Target } from './action-dialog.tsx';
import { TitleList } from './title-list.tsx';

interface RemoveDialogProps {
  readonly resource: Pick<AdminResourceShape, 'name' | 'singular' | 'removal'>;
  readonly target: Target;
  /** Of the button and the title. Default: `Delete`. */
  readonly verb?: string;
  /** Null: nothing was removed. */
  readonly onClose: (result: AdminResult | null) => void;
}

export function RemoveDialog({ resource, target, verb = 'Delete', onClose }: RemoveDialogProps) {
  const [busy, setBusy] = useState(false);
  const [fault, setFault] = useState<unknown>(null);
  const noun = lowerFirst(resource.singular);
  const remove = async (): Promise<void> => {
    setBusy(true);
    setFault(null);
    try {
      onClose(await removeRecord(resource.name, target.id));
    } catch (error) {
      setFault(error);
      setBusy(false);
    }
  };
  return (
    <Modal opened onClose={() => onClose(null)} title={`${verb} this ${noun}?`} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack gap="md">
        {fault !== null && <FaultNotice error={fault} />}
        <Text size="sm">{resource.removal ?? 'This cannot be undone.'}</Text>
        <TitleList heading={`${verb}s this ${noun}:`} targets={[target]} />
        <Group justify="flex-end" gap="sm">
          <Button variant="default" data-autofocus onClick={() => onClose(null)}>
            Cancel
          </Button>
          <Button color="danger" loading={busy} onClick={() => void remove()}>
            {verb}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
