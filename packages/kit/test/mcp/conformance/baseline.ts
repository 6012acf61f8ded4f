/** Checks of the official suite that fail, by reason: each by its name, so that one that begins to pass or to fail is seen. */
export const BASELINE: readonly { readonly reason: string; readonly checks: Readonly<Record<string, readonly string[]>> }[] = [
  {
    reason: 'Prompts are text, and ask nothing of their client.',
    checks: {
      'input-required-result-non-tool-request': ['sep-2322-non-tool-incomplete'],
      'prompts-get-embedded-resource': ['prompts-get-embedded-resource'],
      'prompts-get-with-image': ['prompts-get-with-image'],
    },
  },
  {
    reason:
      'Resources are operations, `kit://`: the fixtures of the suite have addresses of their own. Over HTTP, subscriptions are those of 2026-07-28.',
    checks: {
      'resources-read-binary': ['resources-read-binary'],
      'resources-read-text': ['resources-read-text'],
      'resources-subscribe': ['resources-subscribe'],
      'resources-templates-read': ['resources-templates-read'],
      'resources-unsubscribe': ['resources-unsubscribe'],
    },
  },
  {
    reason: 'There is no completion: it is for prompts and resources.',
    checks: {
      'completion-complete': ['completion-complete'],
    },
  },
  {
    reason: 'A tool asks its user one thing only, to confirm the call: the fixtures of the suite ask for other values.',
    checks: {
      'elicitation-sep1034-defaults': ['elicitation-sep1034-general'],
      'elicitation-sep1330-enums': ['elicitation-sep1330-general'],
      'input-required-result-basic-elicitation': ['sep-2322-elicitation-incomplete'],
      'input-required-result-basic-list-roots': ['sep-2322-list-roots-incomplete'],
      'input-required-result-capability-check': ['sep-2322-respect-client-capabilities'],
      'input-required-result-multi-round': ['sep-2322-multi-round-r1'],
      'input-required-result-multiple-input-requests': ['sep-2322-multiple-inputs-incomplete'],
      'input-required-result-request-state': ['sep-2322-request-state-incomplete'],
      'input-required-result-result-type': ['sep-2322-result-type-included'],
      'input-required-result-tampered-state': ['sep-2322-reject-tampered-state'],
      'tools-call-elicitation': ['tools-call-elicitation'],
    },
  },
  {
    reason: '`x-mcp-header` is never emitted.',
    checks: {
      'http-custom-header-server-validation': [
        'sep-2243-server-decode-base64',
        'sep-2243-server-no-xmcp-tool',
        'sep-2243-server-reject-invalid-param-chars',
        'sep-2243-server-reject-param-mismatch',
        'sep-2243-server-validate-param-match',
      ],
    },
  },
  {
    reason: 'No tool asks the model of its client.',
    checks: {
      'input-required-result-basic-sampling': ['sep-2322-sampling-incomplete'],
      'server-stateless': ['sep-2575-missing-capability-http-400', 'sep-2575-server-rejects-undeclared-capability'],
      'tools-call-sampling': ['tools-call-sampling'],
    },
  },
  {
    reason: 'Definitions that one schema uses once are written in place by the schema library.',
    checks: {
      'json-schema-2020-12': ['json-schema-2020-12-$defs'],
    },
  },
  {
    reason: 'Schemas of arguments are put together from those of the request, whose dialect is the default.',
    checks: {
      'json-schema-2020-12': ['json-schema-2020-12-$schema'],
    },
  },
  {
    reason: 'The fixture has no such keywords: they are resolved at the root.',
    checks: {
      'json-schema-2020-12': [
        'sep-2106-anchor-keyword-preserved',
        'sep-2106-composition-keywords-preserved',
        'sep-2106-conditional-keywords-preserved',
      ],
    },
  },
  {
    reason: 'Nothing is logged to clients.',
    checks: {
      'logging-set-level': ['logging-set-level'],
      'tools-call-with-logging': ['tools-call-with-logging'],
    },
  },
  {
    reason: 'The extension of tasks is not offered: a job that a tool starts is read by the operation that reads jobs.',
    checks: {
      'tasks-capability-negotiation': [
        'sep-2663-server-rejects-undeclared-client',
        'sep-2663-tasks-methods-non-declaring',
        'tasks-extension-advertised',
        'tasks-per-request-meta-opt-in',
      ],
      'tasks-dispatch-and-envelope': [
        'sep-2663-durable-create-strong-consistency',
        'sep-2663-tasks-get-invalid-task-id-32602',
        'tasks-immediate-result-shortcut',
        'tasks-result-type-complete-on-non-task-responses',
        'tasks-server-directed-creation-no-hint',
      ],
      'tasks-lifecycle': [
        'sep-2663-cancel-ack-empty-result',
        'sep-2663-result-type-task-on-create',
        'sep-2663-tasks-get-status-completed',
        'sep-2663-tasks-get-status-failed',
        'sep-2663-tasks-get-status-working',
        'sep-2663-tool-error-uses-completed-status',
        'tasks-cancel-terminal-idempotent-ack',
      ],
      'tasks-mrtr-composition': ['sep-2663-mrtr-synchronous-before-task-creation'],
      'tasks-mrtr-input': ['sep-2663-tasks-get-status-input-required', 'tasks-mrtr-partial-fulfillment', 'tasks-mrtr-tasks-update-resumes'],
      'tasks-request-headers': [
        'sep-2663-routing-headers-accepted-on-tasks-get',
        'sep-2663-server-rejects-mismatched-mcp-name-on-tasks-get',
      ],
      'tasks-request-state-removal': ['tasks-request-state-removal-setup'],
      'tasks-required-task-error': ['sep-2663-server-returns-missing-capability-when-required'],
      'tasks-wire-fields': ['tasks-no-early-ttl-expiry', 'tasks-no-related-task-meta-on-inlined-result', 'tasks-wire-field-renames'],
    },
  },
  {
    reason: 'The check reads the first block of the content, which says that data follows.',
    checks: {
      'tasks-request-headers': ['tasks-headers-tolerate-mcp-method-on-tools-call'],
    },
  },
  {
    reason: 'Results are JSON: no images, audio or embedded resources.',
    checks: {
      'tools-call-audio': ['tools-call-audio'],
      'tools-call-embedded-resource': ['tools-call-embedded-resource'],
      'tools-call-image': ['tools-call-image'],
      'tools-call-mixed-content': ['tools-call-mixed-content'],
    },
  },
];
