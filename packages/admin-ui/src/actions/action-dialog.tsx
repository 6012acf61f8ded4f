import { Button, Group, List, Modal, Progress, Stack, Text } from '@mantine/core';
import { useRef, useState, type FormEvent } from 'react';
import { runAction } from '../api/client.ts';
import {
  ADMIN_ACTION_IDS_MAX,
  type AdminActionShape,
  type AdminPreview,
  type AdminResourceShape,
  type AdminResult,
} from '../api/shapes.ts';
import { toFault } from '../api/fault.ts';
import { FaultNotice } from '../feedback/fault-notice.tsx';
import { Field } from '../forms/field.tsx';
import { toInputs, toSubmission } from '../forms/form-values.ts';
import { formatNumber, lowerFirst, numberedLabel, plural, wordsFor, pluralOf } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { ChosenFields } from './chosen-fields.tsx';
import { Preview } from './preview.tsx';
import { runBatches, type BatchProgress } from './run-batches.ts';
import { useShowSecret } from './secret-provider.tsx';
import { TitleList } from './title-list.tsx';

/** What an action affects: by id, with what people call it. */
export interface Target {
  readonly id: string;
  readonly title: string;
}

interface ActionDialogProps {
  readonly resource: AdminResourceShape;
  readonly action: AdminActionShape;
  readonly targets: readonly Target[];
  /** What the fields begin with. */
  readonly defaults?: Readonly<Record<string, unknown>> | undefined;
  /** What runs it, where that is no action of the resource. */
  readonly send?: ((values: Readonly<Record<string, unknown>>) => Promise<AdminResult>) | undefined;
  /** `message` is null when the dialog has already said everything. */
  readonly onClose: (outcome: ActionOutcome) => void;
}

export interface ActionOutcome {
  readonly changed: boolean;
  readonly message: string | null;
  /** The action that takes it back, and on which records. */
  readonly undo?: NonNullable<AdminResult['undo']> | undefined;
  /** The record to show now. */
  readonly next?: AdminResult['next'];
}

type Phase = 'asking' | 'running' | 'ended';

/** Asks once, naming what it affects; then runs, shows how far it is, and says what could not be done. */
export function ActionDialog({ resource, action, targets, defaults = {}, send, onClose }: ActionDialogProps) {
  const showSecret = useShowSecret();
  const offered = action.fields ?? [];
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const fields = action.sets === true ? offered.filter(({ name }) => chosen.includes(name)) : offered;
  const [inputs, setInputs] = useState(() => toInputs(offered, defaults));
  const [faults, setFaults] = useState<Readonly<Record<string, string>>>({});
  const [phase, setPhase] = useState<Phase>('asking');
  const [progress, setProgress] = useState<BatchProgress>({ done: 0, failures: [], results: [], rest: targets.map(({ id }) => id) });
  const [fault, setFault] = useState<unknown>(null);
  const [preview, setPreview] = useState<AdminPreview | null>(null);
  const stopped = useRef(false);
  const [stopping, setStopping] = useState(false);
  const count = targets.length;
  const label = wordsFor(action.label, count);
  const what = plural(count, lowerFirst(resource.singular), pluralOf(resource));

  const run = async (values: Readonly<Record<string, unknown>>): Promise<void> => {
    stopped.current = false;
    setStopping(false);
    setFault(null);
    setPhase('running');
    // What the dry run has refused is not sent: the dialog said so.
    const refused = new Set(count === 1 ? [] : preview?.failures?.map(({ id }) => id));
    const before = { ...progress, rest: progress.rest.filter((id) => !refused.has(id)) };
    const join = (next: BatchProgress): BatchProgress => ({
      done: before.done + next.done,
      failures: [...before.failures, ...next.failures],
      results: [...before.results, ...next.results],
      rest: next.rest,
    });
    try {
      const end = join(
        await runBatches({
          ids: before.rest,
          size: ADMIN_ACTION_IDS_MAX,
          send: async (ids) => withoutSecret(await (send?.(values) ?? runAction(resource.name, action.name, ids, values)), showSecret),
          onProgress: (next) => setProgress(join(next)),
          isStopped: () => stopped.current,
        }),
      );
      if (end.failures.length === 0 && end.rest.length === 0)
        return onClose({ changed: true, message: summary(end), undo: undoOf(end), next: end.results.at(-1)?.next });
      setPhase('ended');
    } catch (error) {
      const reason = toFault(error);
      const atFields = Object.fromEntries(reason.fields.map(({ field, message }) => [field, message]));
      if (fields.some(({ name }) => atFields[name] !== undefined)) setFaults(atFields);
      else setFault(reason);
      setPhase('asking');
    }
  };

  const submit = (event: FormEvent): void => {
    event.preventDefault();
    // An emptied field that was chosen is set to nothing; one that was not is left alone.
    const submission = toSubmission(fields, inputs, action.sets === true ? {} : null);
    setFaults(submission.faults);
    if (Object.keys(submission.faults).length === 0) void run(submission.values);
  };

  const doable = preview?.able === undefined || count === 1 ? count : count - (preview.failures?.length ?? 0);
  const isNumbered = action.sets === true || (preview?.able !== undefined && count > 1);
  const nouns = [lowerFirst(resource.singular), pluralOf(resource)] as const;
  const submitLabel = isNumbered ? numberedLabel(action.confirmLabel ?? label, doable, nouns) : (action.confirmLabel ?? label);
  // The server works through one record in several requests, and says how far it is.
  const isCounted = progress.results.some(({ rest }) => rest !== undefined);
  const close = (): void => onClose({ changed: progress.done > 0, message: null, undo: undoOf(progress) });
  const partly = progress.done > 0;

  return (
    <Modal
      opened
      onClose={phase === 'running' ? () => {} : close}
      withCloseButton={phase !== 'running'}
      closeOnClickOutside={false}
      closeOnEscape={phase !== 'running'}
      closeButtonProps={{ 'aria-label': 'Close' }}
      title={count === 1 ? `${label}: ${targets[0]?.title ?? ''}` : label}
      centered
      size="lg"
    >
      {phase === 'asking' && (
        <form onSubmit={submit} noValidate>
          <Stack gap="md">
            {fault !== null && <FaultNotice error={fault} />}
            {partly ? (
              <Text size="sm">
                {formatNumber(progress.done)} of {what} are done; {formatNumber(progress.rest.length)} are left.
              </Text>
            ) : (
              <>
                {action.confirm !== undefined && (
                  <Text size="sm">
                    <Prose text={wordsFor(action.confirm, count)} />
                  </Text>
                )}
                {count > 1 && <TitleList heading={`Affects ${what}:`} targets={targets} />}
              </>
            )}
            {fields.map((field) => (
              <Field
                key={field.name}
                field={field}
                value={inputs[field.name] ?? ''}
                error={faults[field.name]}
                onChange={(value) => setInputs({ ...inputs, [field.name]: value })}
              />
            ))}
            {action.sets === true && !partly && (
              <ChosenFields offered={offered} chosen={chosen} inputs={inputs} what={what} onChoose={setChosen} />
            )}
            {action.previews === true && !partly && (
              <Preview
                resource={resource.name}
                action={action}
                targets={targets}
                nouns={nouns}
                fields={fields}
                inputs={inputs}
                onPreview={setPreview}
              />
            )}
            <Group justify="flex-end" gap="sm">
              <Button variant="default" onClick={close} data-autofocus={fields.length === 0 ? true : undefined}>
                {action.dismissLabel ?? 'Cancel'}
              </Button>
              <Button
                type="submit"
                color={action.tone === 'bad' ? 'danger' : 'accent'}
                disabled={(action.sets === true && chosen.length === 0) || preview?.able === 0}
              >
                {partly ? 'Continue with the rest' : submitLabel}
              </Button>
            </Group>
          </Stack>
        </form>
      )}
      {phase === 'running' && (
        <Stack gap="md" aria-live="polite">
          <Text size="sm">
            {stopping
              ? 'Stopping after the current batch …'
              : isCounted
                ? progress.results.at(-1)?.message
                : `Done ${formatNumber(progress.done)} of ${formatNumber(count)}`}
          </Text>
          <Progress value={count === 0 ? 100 : (progress.done / count) * 100} animated={count <= ADMIN_ACTION_IDS_MAX} aria-label={label} />
          <Group justify="flex-end">
            <Button
              variant="default"
              disabled={stopping || (count <= ADMIN_ACTION_IDS_MAX && !isCounted)}
              onClick={() => {
                stopped.current = true;
                setStopping(true);
              }}
            >
              Stop
            </Button>
          </Group>
        </Stack>
      )}
      {phase === 'ended' && (
        <Stack gap="md">
          <Text size="sm" role="status">
            {isCounted ? (
              `${progress.results.at(-1)?.message ?? ''}${progress.failures.length > 0 ? ` ${formatNumber(progress.failures.length)} could not be done.` : ''}${progress.rest.length > 0 ? ' Stopped before the rest.' : ''}`
            ) : (
              <>
                {formatNumber(progress.done - progress.failures.length)} of {what} done
                {progress.failures.length > 0 ? `, ${formatNumber(progress.failures.length)} failed` : ''}
                {progress.rest.length > 0 ? `; stopped before the other ${formatNumber(progress.rest.length)}` : ''}.
              </>
            )}
          </Text>
          {progress.failures.length > 0 && <Failures targets={targets} failures={progress.failures} />}
          <Group justify="flex-end">
            <Button onClick={close} data-autofocus>
              Close
            </Button>
          </Group>
        </Stack>
      )}
    </Modal>
  );
}

/** Shown in full: who ran it on thousands wants to know which ones. */
function Failures({ targets, failures }: { readonly targets: readonly Target[]; readonly failures: BatchProgress['failures'] }) {
  const titles = new Map(targets.map(({ id, title }) => [id, title]));
  return (
    <List size="sm" mah={240} style={{ overflow: 'auto' }} tabIndex={0} aria-label="Failed records">
      {failures.map(({ id, message }) => (
        <List.Item key={id}>
          <strong>{titles.get(id) ?? id}</strong>: {message}
        </List.Item>
      ))}
    </List>
  );
}

/** The secret goes to its dialog and nowhere else: progress and messages are kept longer than it may live. */
function withoutSecret({ secret, ...result }: AdminResult, show: ReturnType<typeof useShowSecret>): AdminResult {
  if (secret !== undefined) show(secret);
  return result;
}

function summary(progress: BatchProgress): string {
  const last = progress.results.at(-1)?.message ?? 'Done.';
  if (progress.results.some(({ rest }) => rest !== undefined)) return last;
  return progress.results.length > 1 ? `${formatNumber(progress.done)} records done. Last: ${last}` : last;
}

function undoOf({ results }: BatchProgress): ActionOutcome['undo'] {
  const given = results.flatMap(({ undo }) => (undo === undefined ? [] : [undo]));
  const [first] = given;
  return first === undefined ? undefined : { action: first.action, ids: given.flatMap(({ ids }) => ids) };
}
