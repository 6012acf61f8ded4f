import { Skeleton, Text } from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { readRecord, updateRecord } from '../api/client.ts';
import type { AdminRow } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { sayDone } from '../feedback/toast.ts';
import { fieldId } from '../forms/field.tsx';
import type { Conflict } from '../forms/form-source.ts';
import { RecordForm } from '../forms/record-form.tsx';
import { changesIn } from '../record/changed-elsewhere.tsx';
import { releaseGuard } from '../routing/leave-guard.ts';

export interface CellEditorProps {
  /** The name of the list. */
  readonly resource: string;
  readonly row: Pick<AdminRow, 'id' | 'title'>;
  /** The fields to edit. */
  readonly names: readonly string[];
  readonly onClose: () => void;
}

const CLOSED = 'This cannot be edited in its present state.';

/** The form of the record with some of its fields: the same rules, and the same question where somebody else changed it meanwhile. */
export function CellEditor({ resource, row, names, onClose }: CellEditorProps) {
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ['edit', resource, row.id, names],
    gcTime: 0,
    queryFn: ({ signal }) => readRecord(resource, row.id, undefined, signal),
    refetchOnMount: 'always',
    refetchOnWindowFocus: false,
  });
  const record = query.data;
  const fields = record?.form?.fields.filter(({ name, refused }) => names.includes(name) && refused === undefined) ?? [];
  const [first] = fields;
  const firstName = first?.name;
  useEffect(() => {
    if (firstName === undefined) return;
    const input = document.getElementById(fieldId(firstName));
    input?.focus();
    if (input instanceof HTMLInputElement) input.select();
  }, [firstName]);
  if (query.error !== null) return <FaultNotice error={query.error} onRetry={() => void query.refetch()} />;
  if (record === undefined) return <Skeleton height={60} />;
  if (record.form === undefined || first === undefined) return <Text size="sm">{record.refused?.edit ?? CLOSED}</Text>;
  const { values, tag } = record.form;
  const save = async (
    given: Readonly<Record<string, unknown>>,
    sending: { readonly tag: string | undefined; readonly signal: AbortSignal },
  ): Promise<void> => {
    const { message } = await updateRecord(resource, row.id, { fields: given, ...sending });
    releaseGuard();
    sayDone(message);
    onClose();
    await client.invalidateQueries();
  };
  const readAgain = async (): Promise<Conflict> => {
    const current = await readRecord(resource, row.id);
    if (current.form === undefined) throw new Error(current.refused?.edit ?? CLOSED);
    const now = current.form;
    return { form: { ...now, fields: now.fields.filter(({ name }) => names.includes(name)) }, changes: changesIn(current) };
  };
  return <RecordForm form={{ fields, values, tag }} submitLabel="Save" onSubmit={save} onConflict={readAgain} onCancel={onClose} />;
}
