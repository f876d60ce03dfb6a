//! One tool that is written in Rust.

use super::in_context::IsolatedContext;
use super::typed::{read, schema_of, write};
use crate::call::{CallContext, Policy};
use crate::catalogue::{Body, Declared, HostBody, InputSchema, OutputSchema, RetryPolicy, SchemaError, ToolSpec};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::future::Future;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use toolexec_protocol::failure::Failure;
use toolexec_protocol::id::{InvalidToolName, ToolName};
use toolexec_worker::{Handler, Returned};

/// A tool that is written in Rust, with its declaration.
///
/// Which of the three constructors is used decides what a time limit can do. An [isolated](Tool::isolated) tool runs in a
/// worker process and is killed. The other two run in this process, where nothing can be killed: they are asked to stop, and
/// the outcome says whether they did.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use toolexec::Tool;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Add {
///     a: i64,
///     b: i64,
/// }
///
/// let add = Tool::isolated("add", "Adds two numbers", |Add { a, b }| {
///     a.checked_add(b).ok_or("the sum has more than 64 bits")
/// })?
/// .timeout(std::time::Duration::from_secs(1));
/// # Ok::<(), toolexec::DeclarationError>(())
/// ```
pub struct Tool {
    pub(super) spec: ToolSpec,
    /// What its worker does, where it is isolated.
    pub(super) handler: Option<Arc<dyn Handler + Send + Sync>>,
}

/// Why a function is not a tool.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeclarationError {
    /// Its name is none.
    #[error("the tool {name:?} cannot be declared")]
    Name {
        /// What was given.
        name: String,
        /// What is wrong with it.
        source: InvalidToolName,
    },
    /// Its arguments are no JSON object that a schema describes; a struct with named fields is one.
    #[error("the arguments of the tool {tool} cannot be declared; take a struct with named fields")]
    Arguments {
        /// The tool.
        tool: ToolName,
        /// What is wrong with them.
        source: SchemaError,
    },
    /// Its result has no schema that can be checked.
    #[error("the result of the tool {tool} cannot be declared")]
    Output {
        /// The tool.
        tool: ToolName,
        /// What is wrong with it.
        source: SchemaError,
    },
}

impl Tool {
    /// A tool that runs in a worker process, which is killed at the time limit with all that it has started.
    ///
    /// `body` lives in the worker program, so this program has to be one: it calls `become_zygote_if_asked` (or
    /// `toolexec::cli::main`, which does) at the top of `main`. A panic, an abort, a stack overflow or an endless loop costs
    /// the call and nothing else. Nothing is shared with this process: what `body` captures is a copy from the start of the
    /// worker program.
    ///
    /// # Errors
    /// [`DeclarationError`] when the name or the type of the arguments cannot be declared.
    pub fn isolated<A, R, E>(
        name: &str,
        description: &str,
        body: impl Fn(A) -> Result<R, E> + Send + Sync + 'static,
    ) -> Result<Self, DeclarationError>
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        E: Into<Failure>,
    {
        let handler = move |arguments: &[u8]| -> Result<Vec<u8>, Failure> {
            let returned = body(read(arguments)?).map_err(Into::into)?;
            write(&returned).map(String::into_bytes)
        };
        let spec = declare::<A>(name, description, Body::Compiled)?;
        Ok(Self { spec, handler: Some(Arc::new(handler)) })
    }

    /// As [`Tool::isolated`], for a tool that reads or writes the slots that calls have in common.
    ///
    /// # Errors
    /// As [`Tool::isolated`].
    pub fn isolated_in_context<A, R, E>(
        name: &str,
        description: &str,
        body: impl Fn(A, &mut IsolatedContext) -> Result<R, E> + Send + Sync + 'static,
    ) -> Result<Self, DeclarationError>
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        E: Into<Failure>,
    {
        let handler = InContext(Box::new(move |arguments: &[u8], context: &[u8]| {
            let mut context = IsolatedContext::read(context)?;
            let value = body(read(arguments)?, &mut context).map_err(Into::into)?;
            Ok(Returned { value: write(&value)?.into_bytes(), writes: context.into_writes() })
        }));
        let spec = declare::<A>(name, description, Body::Compiled)?;
        Ok(Self { spec, handler: Some(Arc::new(handler)) }.reads_context())
    }

    /// A tool that runs in this process, on a thread of its own, in the manner of futures. Asked to stop, it is dropped at
    /// its next `await`; one that does not come to an `await` is no longer waited for, and the outcome says so.
    ///
    /// In this process a panic is caught. An abort, a stack overflow and memory that runs out end the whole host.
    ///
    /// # Errors
    /// As [`Tool::isolated`].
    pub fn asynchronous<A, R, E, F>(
        name: &str,
        description: &str,
        body: impl Fn(A, CallContext) -> F + Send + Sync + 'static,
    ) -> Result<Self, DeclarationError>
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        E: Into<Failure>,
        F: Future<Output = Result<R, E>> + Send + 'static,
    {
        let body = Arc::new(body);
        let body = HostBody::asynchronous(move |arguments, call| {
            let body = Arc::clone(&body);
            // Begun at once, so that the future holds no arguments of a type that may not be sent.
            let begun = read(arguments.as_bytes()).map(|arguments| body(arguments, call));
            async move { write(&begun?.await.map_err(Into::into)?) }
        });
        Ok(Self { spec: declare::<A>(name, description, Body::Host(body))?, handler: None })
    }

    /// A tool that runs in this process, on a thread of its own, in the manner of threads. Asked to stop, it has to look
    /// ([`CallContext::is_stopped`]); one that does not is no longer waited for, and the outcome says so. One that does
    /// look promises it by [`Tool::cooperative`].
    ///
    /// # Errors
    /// As [`Tool::isolated`].
    pub fn blocking<A, R, E>(
        name: &str,
        description: &str,
        body: impl Fn(A, CallContext) -> Result<R, E> + Send + Sync + 'static,
    ) -> Result<Self, DeclarationError>
    where
        A: DeserializeOwned + JsonSchema,
        R: Serialize,
        E: Into<Failure>,
    {
        let body = HostBody::blocking(move |arguments, call| {
            let returned = body(read(arguments.as_bytes())?, call).map_err(Into::into)?;
            write(&returned)
        });
        Ok(Self { spec: declare::<A>(name, description, Body::Host(body))?, handler: None })
    }

    /// How long a call's body may take. Zero is refused when the tool is put into a table.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.with_policy(|policy| policy.timeout = Some(timeout))
    }

    /// In this process: it is asked to stop this long before the end of its time limit. Shorter than that, and not zero.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Self {
        self.with_policy(|policy| policy.grace = Some(grace))
    }

    /// Isolated: a worker serves up to this many calls of the tool instead of one.
    #[must_use]
    pub fn reuse(self, max_calls: NonZeroU32) -> Self {
        self.with_policy(|policy| policy.worker = crate::call::WorkerPolicy::Reuse { max_calls })
    }

    /// In this process: promises that it ends soon after it was asked to stop. An isolated tool is killed and promises nothing; for
    /// one this changes nothing.
    #[must_use]
    pub fn cooperative(mut self) -> Self {
        if let Body::Host(body) = self.spec.body {
            self.spec.body = Body::Host(body.cooperative());
        }
        self
    }

    /// It reads the slots that calls have in common ([`CallContext::context`], [`IsolatedContext::context`]).
    #[must_use]
    pub fn reads_context(self) -> Self {
        self.with_declared(|declared| declared.context = true)
    }

    /// Promises that the result is an `R`: the schema is told to whoever lists the tool, and a result that does not fit it is
    /// an error and not passed on. `R` is mostly the type that the body returns.
    ///
    /// # Errors
    /// [`DeclarationError::Output`] when the schema of `R` cannot be checked.
    pub fn output<R: JsonSchema>(mut self) -> Result<Self, DeclarationError> {
        let schema = OutputSchema::new(schema_of::<R>());
        let tool = || self.spec.name.clone();
        let schema = schema.map_err(|source| DeclarationError::Output { tool: tool(), source })?;
        self.spec.output = Some(schema);
        Ok(self)
    }

    /// Promises that a second run does no harm, and says how a call that failed for a passing reason is repeated.
    #[must_use]
    pub fn retry(self, retry: RetryPolicy) -> Self {
        self.with_declared(|declared| declared.retry = Some(retry))
    }

    /// A batch with a call of it runs in the order of its calls, one after the other.
    #[must_use]
    pub fn serial(self) -> Self {
        self.with_declared(|declared| declared.serial = true)
    }

    /// A call of it asks for approval first.
    #[must_use]
    pub fn sensitive(self) -> Self {
        self.with_declared(|declared| declared.sensitive = true)
    }

    /// Its result is the answer, without another turn of the model, where all calls of a batch declare it.
    #[must_use]
    pub fn return_direct(self) -> Self {
        self.with_declared(|declared| declared.return_direct = true)
    }

    /// What it is found by, each once; they replace those that were there.
    #[must_use]
    pub fn tags<T: Into<String>>(self, tags: impl IntoIterator<Item = T>) -> Self {
        self.with_declared(|declared| declared.tags = tags.into_iter().map(Into::into).collect())
    }

    /// Which group it belongs to.
    #[must_use]
    pub fn category(self, category: impl Into<String>) -> Self {
        self.with_declared(|declared| declared.category = Some(category.into()))
    }

    fn with_declared(mut self, change: impl FnOnce(&mut Declared)) -> Self {
        change(&mut self.spec.declared);
        self
    }

    /// Everything else that a policy says.
    #[must_use]
    pub fn with_policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.spec.policy);
        self
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

type BodyInContext = dyn Fn(&[u8], &[u8]) -> Result<Returned, Failure> + Send + Sync;

struct InContext(Box<BodyInContext>);

impl Handler for InContext {
    fn call(&self, arguments: &[u8]) -> Result<Vec<u8>, Failure> {
        self.call_in_context(arguments, &[]).map(|returned| returned.value)
    }

    fn call_in_context(&self, arguments: &[u8], context: &[u8]) -> Result<Returned, Failure> {
        (self.0)(arguments, context)
    }
}

fn declare<A: JsonSchema>(name: &str, description: &str, body: Body) -> Result<ToolSpec, DeclarationError> {
    let name = ToolName::new(name)
        .map_err(|source| DeclarationError::Name { name: name.chars().take(64).collect(), source })?;
    let input = InputSchema::of_type(schema_of::<A>())
        .map_err(|source| DeclarationError::Arguments { tool: name.clone(), source })?;
    Ok(ToolSpec { input: Some(input), ..ToolSpec::new(name, description, body) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::TableError;
    use crate::{AssemblyError, Tools};

    #[derive(serde::Deserialize, JsonSchema)]
    struct Nothing {}

    fn tool() -> Tool {
        Tool::isolated("count", "Counts", |Nothing {}| Ok::<u32, String>(7)).unwrap()
    }

    #[test]
    fn every_declaration_changes_the_spec() {
        let none = Declared::default();
        let retry = RetryPolicy { initial: Duration::from_secs(1), ..RetryPolicy::default() };
        let cases = [
            (tool(), none.clone()),
            (tool().retry(retry), Declared { retry: Some(retry), ..none.clone() }),
            (tool().serial(), Declared { serial: true, ..none.clone() }),
            (tool().sensitive(), Declared { sensitive: true, ..none.clone() }),
            (tool().return_direct(), Declared { return_direct: true, ..none.clone() }),
            (tool().tags(["a", "b"]), Declared { tags: vec!["a".into(), "b".into()], ..none.clone() }),
            (tool().category("c"), Declared { category: Some("c".into()), ..none }),
        ];
        for (tool, expected) in cases {
            assert_eq!(tool.spec.declared, expected);
        }
    }

    #[test]
    fn output_is_the_schema_of_a_type() {
        assert!(tool().spec.output.is_none());
        let schema = tool().output::<u32>().unwrap().spec.output.unwrap();
        assert_eq!(
            (schema.check("7"), schema.check("-7").is_err(), schema.check("\"7\"").is_err()),
            (Ok(()), true, true)
        );
        let anything = tool().output::<serde_json::Value>().unwrap().spec.output.unwrap();
        assert_eq!(anything.check("[null]"), Ok(()));
    }

    #[test]
    fn what_cannot_be_kept_is_refused_with_the_tool_when_the_table_is_made() {
        let refused = |tool: Tool| match Tools::new().with(tool).into_table().unwrap_err() {
            AssemblyError::Table(error @ TableError::Declared { .. }) => error.to_string(),
            other => panic!("{other}"),
        };
        let said = "the tool count cannot be declared so: ";
        assert_eq!(refused(tool().tags(["a", "a"])), format!("{said}it has the tag \"a\" more than once"));
        assert_eq!(refused(tool().category("")), format!("{said}an empty category is refused; leave it out for none"));
        let retry = RetryPolicy { initial: Duration::ZERO, ..RetryPolicy::default() };
        assert_eq!(refused(tool().retry(retry)), format!("{said}a retry that waits for zero time is refused"));
    }
}
