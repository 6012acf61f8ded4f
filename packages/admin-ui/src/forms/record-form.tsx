import { Button, Group, Stack } from '@mantine/core';
import { useEffect, useRef, useState, type FormEvent } from 'react';
import { useOverdue } from '../api/connection.ts';
import { ApiFault, isUnsettled, toFault } from '../api/fault.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Notice } from '../feedback/notice.tsx';
import { useLeaveGuard } from '../routing/leave-guard.ts';
import { Time } from '../values/time.tsx';
import { forgetDraft, readDraft, writeDraft } from './drafts.ts';
import { Field, fieldId } from './field.tsx';
import { toInputs, toSubmission, type InputValue, type InputValues } from './form-values.ts';
import css from './forms.module.css';
import type { Conflict, FormSource } from './form-source.ts';
import { later } from '../later.ts';
import { LateOver } from '../feedback/late.tsx';

const MergeDialog = later(async () => (await import('./merge-dialog.tsx')).MergeDialog);

interface RecordFormProps {
  readonly form: FormSource;
  /** What the records are called that the values refer to, by the name of the field. */
  readonly titles?: Readonly<Record<string, string>>;
  readonly submitLabel: string;
  /** Where what is typed is kept until it is saved. Absent: nowhere. */
  readonly draft?: string;
  readonly onSubmit: (values: Readonly<Record<string, unknown>>, sending: Sending) => Promise<void>;
  /** Reads the record again after somebody else changed it. */
  readonly onConflict?: () => Promise<Conflict>;
  readonly onCancel: () => void;
}

interface Sending {
  readonly tag: string | undefined;
  readonly signal: AbortSignal;
}

/** What is typed, and what it is compared with. */
interface Typed {
  readonly before: InputValues;
  readonly inputs: InputValues;
  readonly tag: string | undefined;
}

/** A form whose faults stand at their fields, wherever they were found: here or by the server. */
export function RecordForm({ form, titles = {}, submitLabel, draft, onSubmit, onConflict, onCancel }: RecordFormProps) {
  const { fields, values } = form;
  const [stored, setStored] = useState(() => (draft === undefined ? null : readDraft(draft, fields)));
  const [typed, setTyped] = useState<Typed>(() => {
    const made = toInputs(fields, values ?? {});
    // A draft of an older record is compared with that: saving it shows what was changed meanwhile.
    const tag = stored === null ? form.tag : stored.tag;
    return { before: { ...made, ...stored?.before }, inputs: { ...made, ...stored?.inputs }, tag };
  });
  const [first] = useState(typed);
  const { before, inputs } = typed;
  const [faults, setFaults] = useState<Readonly<Record<string, string>>>({});
  const [general, setGeneral] = useState<unknown>(null);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const [unchanged, setUnchanged] = useState(false);
  const [busy, setBusy] = useState(false);
  const [sending, setSending] = useState<readonly string[]>([]);
  const waiting = useRef<AbortController | null>(null);
  const isOverdue = useOverdue();
  // Another form would be another record, and the first may have been created.
  const isOpen = values === undefined && general !== null && isUnsettled(toFault(general));

  const dirty = JSON.stringify(inputs) !== JSON.stringify(before);
  const [isKept, setKept] = useState(false);
  useEffect(() => {
    if (draft !== undefined) setKept(typed === first || writeDraft(draft, fields, typed));
  }, [draft, fields, typed, first]);
  const forget = (): void => (draft === undefined ? undefined : forgetDraft(draft));
  useLeaveGuard(dirty, { isKept, onDiscard: forget });

  const change = (name: string, value: InputValue): void => {
    setTyped((current) => ({ ...current, inputs: { ...current.inputs, [name]: value } }));
    setUnchanged(false);
    setFaults((current) => Object.fromEntries(Object.entries(current).filter(([field]) => field !== name)));
  };

  const show = (found: Readonly<Record<string, string>>): void => {
    setFaults(found);
    const first = fields.find((field) => found[field.name] !== undefined);
    if (first !== undefined) window.requestAnimationFrame(() => document.getElementById(fieldId(first.name))?.focus());
  };

  const explainFault = async (error: unknown, stopped: AbortSignal): Promise<void> => {
    const fault = stopped.aborted ? STOPPED : toFault(error);
    if (fault.status === 412 && onConflict !== undefined) {
      try {
        return setConflict(await onConflict());
      } catch (failure) {
        return setGeneral(failure);
      }
    }
    const known = new Set(fields.map((field) => field.name));
    const atFields = fault.fields.filter(({ field }) => known.has(field));
    show(Object.fromEntries(atFields.toReversed().map(({ field, message }) => [field, message])));
    const elsewhere = fault.fields.filter(({ field }) => !known.has(field)).map(({ message }) => message);
    if (atFields.length === 0 || elsewhere.length > 0) setGeneral(elsewhere.length > 0 ? new Error(elsewhere.join(' ')) : fault);
  };

  const save = async ({ before: from, inputs: given, tag }: Typed): Promise<void> => {
    setGeneral(null);
    const submission = toSubmission(fields, given, values === undefined ? null : from);
    if (Object.keys(submission.faults).length > 0) return show(submission.faults);
    if (values !== undefined && Object.keys(submission.values).length === 0) return setUnchanged(true);
    const controller = new AbortController();
    waiting.current = controller;
    setBusy(true);
    try {
      await onSubmit(submission.values, { tag, signal: controller.signal });
      forget();
    } catch (error) {
      await explainFault(error, controller.signal);
    } finally {
      waiting.current = null;
      setBusy(false);
    }
  };

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    void save(typed);
  };

  const discard = (): void => {
    forget();
    setStored(null);
    const made = toInputs(fields, values ?? {});
    setTyped({ before: made, inputs: made, tag: form.tag });
  };

  const merge = (resolved: InputValues, { form: current }: Conflict): void => {
    const next = { before: toInputs(current.fields, current.values ?? {}), inputs: resolved, tag: current.tag };
    setConflict(null);
    setTyped(next);
    void save(next);
  };

  return (
    <form onSubmit={submit} noValidate>
      <Stack gap="md">
        {general !== null && <FaultNotice error={general} />}
        {isOpen && (
          <Notice tone="warning">
            Sent again as it is, it is created once.{' '}
            <Button size="compact-xs" variant="default" onClick={() => setGeneral(null)}>
              Change it: this may create a second one
            </Button>
          </Notice>
        )}
        {busy && isOverdue && <Notice tone="warning">No answer yet; it may have been saved. It is sent again and done once.</Notice>}
        {unchanged && <Notice tone="info">Nothing was changed, so there is nothing to save.</Notice>}
        {stored !== null && (
          <Notice tone="info">
            What you typed <Time iso={stored.at} /> and did not save is here again.{' '}
            <Button size="compact-xs" variant="default" onClick={discard}>
              Discard it
            </Button>
          </Notice>
        )}
        <fieldset className={css['fields']} disabled={busy || isOpen}>
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
        </fieldset>
        <Group justify="flex-end" gap="sm" mt="xs">
          <Button variant="default" onClick={busy ? () => waiting.current?.abort() : onCancel}>
            {busy ? 'Stop waiting' : 'Cancel'}
          </Button>
          <Button type="submit" loading={busy} disabled={sending.length > 0}>
            {isOpen ? 'Try again' : submitLabel}
          </Button>
        </Group>
      </Stack>
      {conflict !== null && (
        <LateOver>
          <MergeDialog
            conflict={conflict}
            before={before}
            yours={inputs}
            theirs={toInputs(conflict.form.fields, conflict.form.values ?? {})}
            onMerge={(resolved) => merge(resolved, conflict)}
            onClose={() => setConflict(null)}
          />
        </LateOver>
      )}
    </form>
  );
}

const STOPPED = new ApiFault({
  status: 0,
  code: 'no_answer',
  detail: 'No answer came. It may have been saved; saving it again does it once.',
});
