import { Modal } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { RemoveDialog } from '../actions/remove-dialog.tsx';
import { WhyButton } from '../actions/why-button.tsx';
import { createRecord } from '../api/client.ts';
import type { AdminRow, AdminSectionAdds, AdminSectionRemoves } from '../api/shapes.ts';
import { sayDone } from '../feedback/toast.ts';
import { RecordForm } from '../forms/record-form.tsx';

/** Creates a record of another list from the page that it belongs to. */
export function AddRecord({ adds }: { readonly adds: AdminSectionAdds }) {
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const create = async (values: Readonly<Record<string, unknown>>): Promise<void> => {
    const { message } = await createRecord(adds.resource, { ...values, ...adds.values });
    setOpen(false);
    sayDone(message);
    await client.invalidateQueries();
  };
  return (
    <>
      <WhyButton size="xs" variant="default" why={adds.refused} onRun={() => setOpen(true)}>
        {adds.label}
      </WhyButton>
      {open && (
        <Modal opened onClose={() => setOpen(false)} title={adds.label} centered size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
          <RecordForm form={{ fields: adds.fields }} submitLabel={adds.label} onSubmit={create} onCancel={() => setOpen(false)} />
        </Modal>
      )}
    </>
  );
}

/** Deletes the record of another list that a row stands for. */
export function RemoveRecord({ removes, row }: { readonly removes: AdminSectionRemoves; readonly row: Pick<AdminRow, 'id' | 'title'> }) {
  const client = useQueryClient();
  const [open, setOpen] = useState(false);
  const { resource, singular, removal, label, refused } = removes;
  return (
    <>
      <WhyButton size="compact-xs" variant="outline" color="var(--tone-bad)" why={refused} onRun={() => setOpen(true)}>
        {label}
        <span className="visually-hidden"> {row.title}</span>
      </WhyButton>
      {open && (
        <RemoveDialog
          resource={{ name: resource, singular, removal }}
          target={row}
          verb={label}
          onClose={(result) => {
            setOpen(false);
            if (result === null) return;
            sayDone(result.message);
            void client.invalidateQueries();
          }}
        />
      )}
    </>
  );
}
