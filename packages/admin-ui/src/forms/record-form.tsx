import { Button, Group, Stack } from '@mantine/core';
import { useState, type FormEvent } from 'react';
import { toFault } from '../api/fault.ts';
import type { AdminField } from '../api/shapes.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { useLeaveGuard } from '../routing/leave-guard.ts';
import { Field, fieldId } from './field.tsx';
import { toInputs, toSubmission, type InputValue } from './form-values.ts';

interface RecordFormProps {
  readonly fields: readonly AdminField[];
  /** Absent: a new record. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** What the records are called that the values refer to, by the name of the field. */
  readonly titles?: Readonly<Record<string, string>>;
  readonly submitLabel: string;
  readonly onSubmit: (values: Readonly<Record<string, unknown>>) => Promise<void>;
  readonly onCancel: () => void;
}

/** A form whose faults stand at their fields, wherever they were found: here or by the server. */
export function RecordForm({ fields, values, titles = {}, submitLabel, onSubmit, onCancel }: RecordFormProps) {
  const [before] = useState(() => toInputs(fields, values ?? {}));
  const [inputs, setInputs] = useState(before);
  const [faults, setFaults] = useState<Readonly<Record<string, string>>>({});
  const [general, setGeneral] = useState<unknown>(null);
  const [unchanged, setUnchanged] = useState(false);
  const [busy, setBusy] = useState(false);
  const [sending, setSending] = useState<readonly string[]>([]);

  useLeaveGuard(JSON.stringify(inputs) !== JSON.stringify(before));

  const change = (name: string, value: InputValue): void => {
    setInputs((current) => ({ ...current, [name]: value }));
    setUnchanged(false);
    setFaults((current) => Object.fromEntries(Object.entries(current).filter(([field]) => field !== name)));
  };

  const show = (found: Readonly<Record<string, string>>): void => {
    setFaults(found);
    const first = fields.find((field) => found[field.name] !== undefined);
    if (first !== undefined) window.requestAnimationFrame(() => document.getElementById(fieldId(first.name))?.focus());
  };

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    setGeneral(null);
    const submission = toSubmission(fields, inputs, values === undefined ? null : before);
    if (Object.keys(submission.faults).length > 0) return show(submission.faults);
    if (values !== undefined && Object.keys(submission.values).length === 0) return setUnchanged(true);
    setBusy(true);
    try {
      await onSubmit(submission.values);
    } catch (error) {
      const fault = toFault(error);
      const known = new Set(fields.map((field) => field.name));
      const atFields = fault.fields.filter(({ field }) => known.has(field));
      show(Object.fromEntries(atFields.toReversed().map(({ field, message }) => [field, message])));
      const elsewhere = fault.fields.filter(({ field }) => !known.has(field)).map(({ message }) => message);
      if (atFields.length === 0 || elsewhere.length > 0) setGeneral(elsewhere.length > 0 ? new Error(elsewhere.join(' ')) : fault);
    } finally {
      setBusy(false);
    }
  };

  return (
    <form onSubmit={(event) => void submit(event)} noValidate>
      <Stack gap="md">
        {general !== null && <FaultNotice error={general} />}
        {unchanged && <Notice tone="info">Nothing was changed, so there is nothing to save.</Notice>}
        {fields.map((field) => (
          <Field
            key={field.name}
            field={field}
            value={inputs[field.name] ?? ''}
            error={faults[field.name]}
            onChange={(value) => change(field.name, value)}
            title={titles[field.name]}
            onBusy={(isBusy) =>
              setSending((current) => [...current.filter((name) => name !== field.name), ...(isBusy ? [field.name] : [])])
            }
          />
        ))}
        <Group justify="flex-end" gap="sm" mt="xs">
          <Button variant="default" onClick={onCancel} disabled={busy}>
            Cancel
          </Button>
          <Button type="submit" loading={busy} disabled={sending.length > 0}>
            {submitLabel}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
