import { Anchor, Group, Text } from '@mantine/core';
import { use } from 'react';
import type { AdminCellKind, AdminFieldChange, AdminSection } from '../api/shapes.ts';
import { Chart } from '../charts/chart.tsx';
import { CopyButton } from '../feedback/copy-button.tsx';
import { listHash } from '../routing/location.ts';
import { JsonView } from '../values/json-view.tsx';
import { Value } from '../values/value.tsx';
import valueCss from '../values/values.module.css';
import css from './record.module.css';
import { ChangedFacts } from './changed-facts.ts';
import { Changes } from './changes.tsx';
import { SectionTable } from './section-table.tsx';
import { Timeline } from './timeline.tsx';
import { later } from '../later.ts';
import { Late } from '../feedback/late.tsx';

const SignatureCheck = later(async () => (await import('./signature-check.tsx')).SignatureCheck);

type Level = 2 | 3 | 4;

/** A part of a record's page, or of a row that was opened. */
export function SectionBody({
  section,
  level,
  onZoom,
  onRestore,
}: {
  readonly section: AdminSection;
  readonly level: Level;
  /** Of charts: dragging chooses a range of time. */
  readonly onZoom?: ((from: string, to: string) => void) | undefined;
  /** Of a timeline: puts a value back. */
  readonly onRestore?: ((change: AdminFieldChange) => void) | undefined;
}) {
  const changed = use(ChangedFacts);
  switch (section.kind) {
    case 'facts':
      return (
        <section>
          <SectionTitle text={section.title} level={level} />
          <dl className={css['facts']}>
            {section.columns.map((column) => (
              <div
                key={column.name}
                className={column.kind === 'json' ? css['wide'] : undefined}
                data-changed={changed.has(column.name) || undefined}
              >
                <dt>{column.label}</dt>
                <dd>
                  <Value kind={column.kind} value={section.values[column.name]} label={column.label} whole />
                  <CopyFact kind={column.kind} value={section.values[column.name]} label={column.label} />
                </dd>
              </div>
            ))}
          </dl>
        </section>
      );
    case 'json':
      return (
        <section>
          <SectionTitle text={section.title} level={level} />
          <JsonView value={section.value} label={section.title} />
        </section>
      );
    case 'table':
      return (
        <SectionTable
          section={section}
          level={level === 2 ? 2 : 3}
          renderDetail={(detail, index) => <SectionBody key={index} section={detail} level={level === 2 ? 3 : 4} />}
        />
      );
    case 'text':
      return (
        <section>
          <SectionTitle text={section.title} level={level} />
          {section.code === true ? (
            <>
              <CopyButton text={section.text} label={`Copy ${section.title}`} />
              <pre className={valueCss['block']} tabIndex={0} role="region" aria-label={section.title}>
                {section.text === '' ? '(empty)' : section.text}
              </pre>
            </>
          ) : (
            <Text size="sm" className={valueCss['whole']}>
              {section.text === '' ? '–' : section.text}
            </Text>
          )}
        </section>
      );
    case 'timeline':
      return (
        <section>
          <Group justify="space-between" align="baseline" gap="xs">
            <SectionTitle text={section.title} level={level} />
            <Group gap="sm">
              {section.lists?.map(({ resource, filters, text }) => (
                <Anchor key={resource} size="sm" href={listHash(resource, filters)}>
                  {text}
                </Anchor>
              ))}
              {section.more !== undefined && (
                <Anchor size="sm" href={listHash(section.more.resource, section.more.filters)}>
                  Show all<span className="visually-hidden"> of {section.title}</span>
                </Anchor>
              )}
            </Group>
          </Group>
          {section.entries.length === 0 && section.empty !== undefined && (
            <Text size="sm" c="dimmed">
              {section.empty}
            </Text>
          )}
          <Timeline entries={section.entries} onRestore={onRestore} />
        </section>
      );
    case 'changes':
      return (
        <section>
          <SectionTitle text={section.title} level={level} />
          <Changes rows={section.rows} empty={section.empty ?? 'No field was changed.'} />
        </section>
      );
    case 'image':
      return (
        <section>
          <SectionTitle text={section.title} level={level} />
          {/^\/(?!\/)/.test(section.url) ? (
            <img className={css['image']} src={section.url} alt={section.text} />
          ) : (
            <a href={section.url} rel="noreferrer">
              {section.text}
            </a>
          )}
        </section>
      );
    case 'signature_check':
      return (
        <section>
          <SectionTitle text={section.title} level={level} />
          <Late height={200}>
            <SignatureCheck />
          </Late>
        </section>
      );
    default:
      return <Chart chart={section.chart} level={level === 2 ? 2 : 3} onZoom={onZoom} />;
  }
}

/** Ids, keys and addresses are there to be pasted elsewhere. */
function CopyFact({ kind, value, label }: { readonly kind: AdminCellKind; readonly value: unknown; readonly label: string }) {
  if ((kind !== 'code' && kind !== 'url') || typeof value !== 'string' || value === '') return null;
  return <CopyButton text={value} label={`Copy ${label}`} isIcon />;
}

function SectionTitle({ text, level }: { readonly text: string; readonly level: Level }) {
  const Heading = `h${level}` as const;
  return (
    <Text component={Heading} fw={600} size="sm" m={0} mb="xs">
      {text}
    </Text>
  );
}
