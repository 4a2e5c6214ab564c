//! Serves the tools, resources and prompts that the protocol's conformance suite uses through codescout's own HTTP
//! code, so that the suite tests that code. Not part of the product. `mcp_stack ADDRESS` listens there without a token.

// The newest protocol revision deprecates sampling, roots and logging, but the suite still tests them.
#![allow(deprecated)]
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use codescout::mcp::HttpOptions;
use rmcp::model::*;
use rmcp::service::{RequestContext, SubscriptionContext, SubscriptionSink};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};

const FIXTURES: &str = include_str!("fixtures.json");
const TTL_MS: u64 = 60_000;
const STATE_KEY: [u8; 32] = *b"only for the conformance suite!!";
/// Tools whose answers are computed here. Constant answers are in the fixtures.
const MADE: &[&str] = &[
    "test_tool_with_logging",
    "test_tool_with_progress",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
    "test_reconnection",
    "test_custom_header",
    "test_trigger_tool_change",
    "test_trigger_prompt_change",
    "test_missing_capability",
    "test_streaming_elicitation",
    "test_logging_tool",
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
];

#[derive(Clone)]
struct Stack {
    fixtures: Arc<Value>,
    watched: Arc<Mutex<HashSet<String>>>,
    listeners: Arc<Mutex<HashMap<String, SubscriptionSink>>>,
}

fn text(text: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn object(value: Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

/// Prefixes a state, which the client returns later, with a keyed hash.
fn seal(state: &str) -> String {
    format!("{}.{state}", blake3::keyed_hash(&STATE_KEY, state.as_bytes()).to_hex())
}

fn open(sealed: &str) -> Result<&str, ErrorData> {
    let opened = sealed.split_once('.').filter(|(_, state)| seal(state) == sealed);
    opened
        .map(|(_, state)| state)
        .ok_or_else(|| ErrorData::invalid_params("requestState failed integrity verification", None))
}

fn ask(message: &str, field: &str, kind: &str) -> InputRequest {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    InputRequest::Elicitation(ElicitRequest::new(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message.into(),
        requested_schema: serde_json::from_value(schema).unwrap(),
    }))
}

fn sample(prompt: &str) -> InputRequest {
    let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], 100);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

fn roots() -> InputRequest {
    InputRequest::ListRoots(ListRootsRequest::default())
}

fn required(requests: Vec<(&str, InputRequest)>, state: Option<&str>) -> CallToolResponse {
    let requests: InputRequests = requests
        .into_iter()
        .map(|(key, request)| (key.into(), request))
        .collect();
    match state {
        Some(state) => InputRequiredResult::new(Some(requests), Some(seal(state))).into(),
        None => InputRequiredResult::from_input_requests(requests).into(),
    }
}

/// Returns the client's answer under a key if it is an object; otherwise `None`.
fn given<'a>(responses: Option<&'a InputResponses>, key: &str) -> Option<&'a JsonObject> {
    responses
        .and_then(|responses| responses.get(key))
        .and_then(Value::as_object)
}

fn field(given: &JsonObject, path: &[&str]) -> String {
    let value = path.iter().try_fold(&given["content"], |value, key| value.get(key));
    value.and_then(Value::as_str).unwrap_or("(nothing)").to_owned()
}

impl Stack {
    fn schema(&self, tool: &str) -> JsonObject {
        match self.fixtures["schemas"].get(tool) {
            Some(schema) => object(schema.clone()),
            None => object(json!({"type": "object", "properties": {}})),
        }
    }

    fn tool(&self, name: &str) -> Tool {
        Tool::new(name.to_owned(), format!("Fixture {name}"), self.schema(name))
    }

    async fn elicit(&self, tool: &str, message: &str, context: &RequestContext<RoleServer>) -> CallToolResponse {
        let schema = self.fixtures["elicitations"][tool].clone();
        let params = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message.into(),
            requested_schema: serde_json::from_value(schema).unwrap(),
        };
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        match context.peer.send_request(request).await {
            Ok(answer) => {
                let answer = serde_json::to_value(&answer).unwrap();
                text(format!(
                    "User response: action={}, content={}",
                    answer["action"].as_str().unwrap_or("?"),
                    answer["content"]
                ))
            }
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into(),
        }
    }

    async fn changed(&self, what: &str) -> CallToolResponse {
        let listeners: Vec<SubscriptionSink> = self.listeners.lock().unwrap().values().cloned().collect();
        for listener in listeners {
            let _ = match what {
                "tools" => listener.notify_tool_list_changed().await,
                _ => listener.notify_prompt_list_changed().await,
            };
        }
        text(format!("{what} changed"))
    }

    fn with_input(
        &self,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let responses = request.input_responses.as_ref();
        let state = request.request_state.as_deref().map(open).transpose()?;
        let name = || ask("What is your name?", "name", "string");
        Ok(match request.name.trim_start_matches("test_input_required_result_") {
            "elicitation" => match given(responses, "user_name") {
                Some(answer) => text(format!("Hello, {}!", field(answer, &["name"]))),
                None => required(vec![("user_name", name())], None),
            },
            "sampling" => match given(responses, "capital_question") {
                Some(answer) => text(format!("Sampling response: {}", field(answer, &["text"]))),
                None => required(
                    vec![("capital_question", sample("What is the capital of France?"))],
                    None,
                ),
            },
            "list_roots" => match given(responses, "client_roots") {
                Some(answer) => text(format!("Client roots: {}", answer["roots"])),
                None => required(vec![("client_roots", roots())], None),
            },
            "request_state" | "tampered_state" => match state {
                Some(_) => text("Confirmed: state-ok"),
                None => required(
                    vec![("confirm", ask("Please confirm", "ok", "boolean"))],
                    Some("confirm"),
                ),
            },
            "multiple_inputs" => {
                let keys = ["user_name", "greeting", "client_roots"];
                match keys.iter().all(|key| given(responses, key).is_some()) && state.is_some() {
                    true => text("All inputs received"),
                    false => {
                        let requests = vec![
                            ("user_name", name()),
                            ("greeting", sample("Generate a greeting")),
                            ("client_roots", roots()),
                        ];
                        required(requests, Some("gather"))
                    }
                }
            }
            "multi_round" => match state {
                None => required(
                    vec![("step1", ask("Step 1: What is your name?", "name", "string"))],
                    Some("1"),
                ),
                Some("1") => required(
                    vec![("step2", ask("Step 2: Which colour?", "color", "string"))],
                    Some("2"),
                ),
                Some(_) => text("Multi-round flow complete"),
            },
            _ if responses.is_some() => text("Capability-aware flow complete"),
            _ => {
                let declared = context.meta.client_capabilities().unwrap_or_default();
                let mut requests = Vec::new();
                if declared.elicitation.is_some() {
                    requests.push(("user_name", name()));
                }
                if declared.sampling.is_some() {
                    requests.push(("greeting", sample("Generate a greeting")));
                }
                if declared.roots.is_some() {
                    requests.push(("client_roots", roots()));
                }
                match requests.is_empty() {
                    true => text("The client declared nothing that could be asked for"),
                    false => required(requests, None),
                }
            }
        })
    }
}

impl ServerHandler for Stack {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_resources_list_changed()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_logging()
            .enable_completions()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("codescout-stack", "0.1.0"))
            .with_instructions("Fixtures of the conformance suite")
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        let is_known = MADE.contains(&name) || self.fixtures["tools"].get(name).is_some();
        is_known.then(|| self.tool(name))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let fixed = self.fixtures["tools"].as_object().unwrap().keys().map(String::as_str);
        let tools = fixed.chain(MADE.iter().copied()).map(|name| self.tool(name)).collect();
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.as_ref();
        if let Some(fixed) = self.fixtures["tools"].get(name) {
            let mut result: CallToolResult = serde_json::from_value(fixed.clone()).unwrap();
            result.result_type = Some(ResultType::COMPLETE);
            return Ok(result.into());
        }
        if name.starts_with("test_input_required_result_") {
            return self.with_input(&request, &context);
        }
        let argument = |key: &str| {
            let arguments = request.arguments.as_ref();
            arguments
                .and_then(|arguments| arguments.get(key))
                .and_then(Value::as_str)
                .unwrap_or("Hello")
                .to_owned()
        };
        let peer = &context.peer;
        Ok(match name {
            "test_tool_with_logging" => {
                for said in [
                    "Tool execution started",
                    "Tool processing data",
                    "Tool execution completed",
                ] {
                    let param = LoggingMessageNotificationParam::new(LoggingLevel::Info, json!(said));
                    let _ = peer.notify_logging_message(param).await;
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                text("Logging test completed")
            }
            "test_tool_with_progress" => {
                for (progress, said) in [(0.0, "Starting"), (50.0, "Halfway"), (100.0, "Complete")] {
                    if let Some(token) = context.meta.get_progress_token() {
                        let param = ProgressNotificationParam::new(token, progress);
                        let _ = peer.notify_progress(param.with_total(100.0).with_message(said)).await;
                    }
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                text("Progress test completed")
            }
            "test_sampling" => {
                let messages = vec![SamplingMessage::user_text(argument("prompt"))];
                match peer
                    .create_message(CreateMessageRequestParams::new(messages, 100))
                    .await
                {
                    Ok(answer) => {
                        let answer = serde_json::to_value(&answer).unwrap();
                        text(format!(
                            "LLM response: {}",
                            answer["content"]["text"].as_str().unwrap_or("none")
                        ))
                    }
                    Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]).into(),
                }
            }
            "test_elicitation" => self.elicit(name, &argument("message"), &context).await,
            "test_elicitation_sep1034_defaults" | "test_elicitation_sep1330_enums" => {
                self.elicit(name, "Please provide values", &context).await
            }
            "test_reconnection" => {
                tokio::time::sleep(Duration::from_millis(100)).await;
                text("Reconnection test completed")
            }
            "test_custom_header" => text(argument("value")),
            "test_trigger_tool_change" => self.changed("tools").await,
            "test_trigger_prompt_change" => self.changed("prompts").await,
            "test_missing_capability" => {
                if context
                    .meta
                    .client_capabilities()
                    .unwrap_or_default()
                    .sampling
                    .is_none()
                {
                    let needed = ClientCapabilities::builder().enable_sampling().build();
                    return Err(ErrorData::missing_required_client_capability(needed));
                }
                text("Required capability declared")
            }
            "test_streaming_elicitation" => required(
                vec![("streaming_elicitation", ask("Provide a value", "value", "string"))],
                None,
            ),
            "test_logging_tool" => {
                if let Some(level) = context.meta.log_level() {
                    let param = LoggingMessageNotificationParam::new(level, json!("a log level was asked for"));
                    let _ = peer.notify_logging_message(param).await;
                }
                text("Logging tool completed")
            }
            _ => return Err(ErrorData::invalid_params(format!("unknown tool {name}"), None)),
        })
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let resources = self.fixtures["resources"].as_object().unwrap().iter();
        let resources = resources.map(|(uri, fixed)| {
            Resource::new(uri, uri.trim_start_matches("test://"))
                .with_description("Fixture")
                .with_mime_type(fixed["mimeType"].as_str().unwrap())
        });
        Ok(ListResourcesResult::with_all_items(resources.collect())
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new("test://template/{id}/data", "template")
            .with_description("Fixture")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template])
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = &request.uri;
        let id = uri
            .strip_prefix("test://template/")
            .and_then(|rest| rest.strip_suffix("/data"));
        let contents = match (self.fixtures["resources"].get(uri), id) {
            (Some(fixed), _) => fixed.clone(),
            (None, Some(id)) => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
                json!({"uri": uri, "mimeType": "application/json", "text": data})
            }
            (None, None) => {
                return Err(ErrorData::resource_not_found(
                    "no such resource",
                    Some(json!({"uri": uri})),
                ));
            }
        };
        Ok(ReadResourceResult::new(vec![serde_json::from_value(contents).unwrap()])
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public)
            .into())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.lock().unwrap().insert(request.uri);
        Ok(())
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.watched.lock().unwrap().remove(&request.uri);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.supported_by(&self.get_info().capabilities))
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = format!("{:?} {:p}", context.sink().id(), &context);
        self.listeners
            .lock()
            .unwrap()
            .insert(key.clone(), context.sink().clone());
        context.cancelled().await;
        self.listeners.lock().unwrap().remove(&key);
        Ok(())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompts = self.fixtures["prompts"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, fixed)| {
                let arguments = (name == "test_prompt_with_arguments").then(|| {
                    vec![
                        PromptArgument::new("arg1")
                            .with_description("First")
                            .with_required(true),
                        PromptArgument::new("arg2")
                            .with_description("Second")
                            .with_required(false),
                    ]
                });
                Prompt::new(name, fixed["description"].as_str(), arguments)
            });
        Ok(ListPromptsResult::with_all_items(prompts.collect())
            .with_ttl_ms(TTL_MS)
            .with_cache_scope(CacheScope::Public))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let said = |said: String| GetPromptResult::new(vec![PromptMessage::new_text(Role::User, said)]);
        let argument = |key: &str| {
            let arguments = request.arguments.as_ref();
            arguments
                .and_then(|all| all.get(key))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        Ok(match request.name.as_str() {
            "test_prompt_with_arguments" => {
                let (first, second) = (argument("arg1"), argument("arg2"));
                said(format!("Prompt with arguments: arg1='{first}', arg2='{second}'")).into()
            }
            "test_input_required_result_prompt" => match given(request.input_responses.as_ref(), "user_context") {
                Some(answer) => said(format!("Prompt with elicited context: {}", field(answer, &["context"]))).into(),
                None => {
                    let question = ask("What context should the prompt use?", "context", "string");
                    let requests: InputRequests = [("user_context".into(), question)].into_iter().collect();
                    InputRequiredResult::from_input_requests(requests).into()
                }
            },
            name => match self.fixtures["prompts"].get(name) {
                Some(fixed) => {
                    let messages: Vec<PromptMessage> = serde_json::from_value(fixed["messages"].clone()).unwrap();
                    GetPromptResult::new(messages).into()
                }
                None => return Err(ErrorData::invalid_params(format!("unknown prompt {name}"), None)),
            },
        })
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        let values = CompletionInfo::new(vec!["1".to_owned(), "2".to_owned()]);
        values
            .map(CompleteResult::new)
            .map_err(|error| ErrorData::internal_error(error, None))
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

fn main() {
    let stack = Stack {
        fixtures: Arc::new(serde_json::from_str(FIXTURES).unwrap()),
        watched: Arc::default(),
        listeners: Arc::default(),
    };
    let options = HttpOptions {
        address: std::env::args().nth(1).expect("an address to listen at"),
        token_file: None,
        no_token: true,
        hosts: Vec::new(),
    };
    codescout::mcp::serve_handler(stack, &options).unwrap();
}
